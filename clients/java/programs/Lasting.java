import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import rota.Backoff;
import rota.Event;
import rota.Options;
import rota.Reconnecting;
import rota.RotaException;
import rota.Tls;

/**
 * A client that outlives its daemon: {@code Lasting ADDRESS NAME GROUP [CA CERTIFICATE KEY SERVER-NAME]}.
 *
 * <p>It says {@code ready} when it is in the group, then each event: {@code got SENDER TEXT}, {@code view MEMBERS}, {@code gap
 * UNSETTLED NAME NOT-JOINED}. Each line of its input is sent to the group, or, as {@code @TO TEXT}, to another client; {@code unsent
 * TEXT} where there is no connection. At the input's end it closes.
 */
public final class Lasting {
    private Lasting() {}

    private static void say(Event event) {
        if (event instanceof Event.Message message) {
            System.out.println("got " + message.sender() + " " + new String(message.payload(), StandardCharsets.UTF_8));
        } else if (event instanceof Event.View view) {
            System.out.println("view " + view.members().size());
        } else if (event instanceof Event.Reconnected gap) {
            System.out.println("gap " + gap.unsettledBytes() + " " + gap.name() + " " + gap.notJoined().size());
        }
    }

    private static void listen(Reconnecting client) {
        try {
            while (true) {
                say(client.receive());
            }
        } catch (RotaException.Lost closed) {
            return;
        } catch (RotaException | InterruptedException error) {
            error.printStackTrace();
            System.exit(1);
        }
    }

    public static void main(String[] arguments) throws Exception {
        String group = arguments[2];
        Options options = new Options().name(arguments[1]).membership(true).timeout(Duration.ofMinutes(1));
        if (arguments.length == 7) {
            Tls tls = Tls.load(Path.of(arguments[3]), Path.of(arguments[4]), Path.of(arguments[5]));
            options.tls(tls.serverName(arguments[6]));
        }
        Backoff backoff = new Backoff(Duration.ofMillis(10), Duration.ofMillis(200));
        Reconnecting client = Reconnecting.connect(arguments[0], options, backoff);
        client.join(group);
        System.out.println("ready");
        Thread listening = new Thread(() -> listen(client));
        listening.start();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String to = group;
            String text = line;
            if (line.startsWith("@")) {
                int space = line.indexOf(' ');
                to = line.substring(1, space);
                text = line.substring(space + 1);
            }
            try {
                client.send(to, text.getBytes(StandardCharsets.UTF_8));
            } catch (RotaException.Lost lost) {
                System.out.println("unsent " + text);
            }
        }
        client.close();
        listening.join();
    }
}
