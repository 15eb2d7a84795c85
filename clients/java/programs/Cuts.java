import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import rota.Client;
import rota.Event;
import rota.Options;
import rota.RotaException;
import rota.Tls;

/**
 * A client that does what the cutting tests of the daemons say, and says what it saw.
 *
 * <p>An order is a line on standard input: ADDRESS NAME STYLE MESSAGES BYTES CLOSES CA CERTIFICATE KEY. What comes of it are lines
 * on standard output: {@code sent NUMBER}, {@code got SENDER NUMBER}, {@code refused WHY}, {@code lost WHY}, {@code closed}, {@code
 * unclosed WHY}, {@code end}.
 */
public final class Cuts {
    private static final Duration PATIENCE = Duration.ofMinutes(1);
    /** After so many messages all are flushed, where they are fed. */
    private static final int GATHERED = 8;
    /** So many events are taken between two messages: there may always be more. */
    private static final int MOST = 100;

    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    private Cuts() {}

    private record Order(String address, String name, String style, int messages, int bytes, boolean closes, String[] files) {
        static Order read(String line) {
            String[] words = line.split(" ");
            int messages = Integer.parseInt(words[3]);
            int bytes = Integer.parseInt(words[4]);
            String[] files = Arrays.copyOfRange(words, 6, 9);
            return new Order(words[0], words[1], words[2], messages, bytes, words[5].equals("1"), files);
        }

        byte[] payload(int number) {
            byte[] text = (number + "|").getBytes(StandardCharsets.US_ASCII);
            byte[] payload = Arrays.copyOf(text, Math.max(text.length, bytes));
            Arrays.fill(payload, text.length, payload.length, (byte) '.');
            return payload;
        }
    }

    private static void say(String line) {
        synchronized (OUT) {
            OUT.println(line.replace('\n', ' '));
        }
    }

    private static void hear(Event event) {
        if (event instanceof Event.Message message) {
            String text = new String(message.payload(), StandardCharsets.US_ASCII);
            say("got " + message.sender() + " " + text.substring(0, text.indexOf('|')));
        } else {
            say("wrong " + event);
        }
    }

    /** Takes all there is, to the end, behind which nothing may come. */
    private static void listen(Client client) throws InterruptedException {
        try {
            while (true) {
                Event event = client.receive(PATIENCE);
                if (event == null) {
                    say("wrong: it hangs");
                    return;
                }
                hear(event);
            }
        } catch (RotaException.Lost lost) {
            say("lost " + lost.getMessage());
        }
        try {
            say("wrong " + client.receive());
        } catch (RotaException.Lost lost) {
            return;
        }
    }

    /** Whether there may be more to send. */
    private static boolean send(Client client, Order order, int number) throws RotaException, InterruptedException {
        try {
            client.send("g", order.payload(number));
            say("sent " + number);
            if (order.style.equals("feed") && number % GATHERED == 0) {
                client.flush();
            }
            return true;
        } catch (RotaException.Lost lost) {
            return false;
        }
    }

    private static void sendAll(Client client, Order order) {
        try {
            for (int number = 1; number <= order.messages && send(client, order, number); number++) {
                continue;
            }
        } catch (RotaException | InterruptedException error) {
            say("wrong " + error);
        }
    }

    private static void use(Client client, Order order) throws RotaException, InterruptedException {
        try {
            client.join("g");
        } catch (RotaException.Lost lost) {
            listen(client);
            return;
        }
        if (order.style.equals("halves")) {
            Thread sending = new Thread(() -> sendAll(client, order));
            sending.start();
            listen(client);
            sending.join();
            return;
        }
        for (int number = 1; number <= order.messages; number++) {
            if (!send(client, order, number)) {
                listen(client);
                return;
            }
            try {
                for (int taken = 0; taken < MOST; taken++) {
                    Event event = client.tryReceive();
                    if (event == null) {
                        break;
                    }
                    hear(event);
                }
            } catch (RotaException.Lost lost) {
                // The next call says so, too.
                continue;
            }
        }
        if (!order.closes) {
            listen(client);
            return;
        }
        try {
            client.close();
            say("closed");
        } catch (RotaException.Lost lost) {
            say("unclosed " + lost.getMessage());
        }
    }

    private static void play(Order order) throws Exception {
        Options options = new Options().name(order.name).timeout(PATIENCE);
        if (order.address.startsWith("tls:")) {
            String[] files = order.files;
            options.tls(Tls.load(Path.of(files[0]), Path.of(files[1]), Path.of(files[2])).serverName("daemon.example"));
        }
        Client client;
        try {
            client = options.connect(order.address);
        } catch (RotaException refused) {
            say("refused " + refused.getMessage());
            return;
        }
        try {
            use(client, order);
        } finally {
            client.hangUp();
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            play(Order.read(line));
            say("end");
            synchronized (OUT) {
                OUT.flush();
            }
        }
    }
}
