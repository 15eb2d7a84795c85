package rota;

import static rota.ClientTest.text;
import static rota.Tests.PATIENCE;
import static rota.Tests.check;
import static rota.Tests.equal;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import rota.RotaException.Lost;
import rota.RotaException.Lost.Loss;

/** A connection that is cut at every byte. */
final class CutsTest {
    private static final List<List<String>> STEPS = List.of(
            List.of("hello-membership"),
            List.of("welcome"),
            List.of("join"),
            List.of("view-own-join", "done", "view-join"),
            List.of("send", "send"),
            List.of("credit", "message", "view-network", "message"));

    private CutsTest() {}

    /** The bytes of a step: the client has the even ones. */
    private static byte[] step(int at) {
        Map<String, Vector> frames = Vector.all(at % 2 == 0 ? "requests.txt" : "replies.txt");
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        STEPS.get(at).forEach(name -> all.writeBytes(frames.get(name).bytes("bytes")));
        return all.toByteArray();
    }

    private static List<byte[]> steps() {
        List<byte[]> steps = new ArrayList<>();
        for (int at = 0; at < STEPS.size(); at++) {
            steps.add(step(at));
        }
        return steps;
    }

    private static int total(List<byte[]> steps, int first) {
        int total = 0;
        for (int at = first; at < steps.size(); at += 2) {
            total += steps.get(at).length;
        }
        return total;
    }

    /** Plays the daemon, which says and hears so many bytes; what it heard. */
    private static byte[] act(House.Peer peer, List<byte[]> steps, int says, int hears) throws IOException {
        ByteArrayOutputStream heard = new ByteArrayOutputStream();
        for (int at = 0; at < steps.size(); at++) {
            byte[] step = steps.get(at);
            if (at % 2 == 0) {
                byte[] piece = peer.read(Math.min(step.length, hears - heard.size()));
                heard.writeBytes(piece);
                if (piece.length < step.length) {
                    break;
                }
                continue;
            }
            int most = Math.min(step.length, says);
            says -= most;
            try {
                peer.tell(Arrays.copyOf(step, most));
            } catch (IOException gone) {
                break;
            }
            if (most < step.length) {
                break;
            }
        }
        return heard.toByteArray();
    }

    private record Seen(int events, int sent, long unsettled, RotaException end) {}

    /** A client up to its loss. */
    private static Seen use(House house) throws InterruptedException {
        Client client;
        try {
            client = new Options().name("alice").membership(true).timeout(PATIENCE).connect(house.path.toString());
        } catch (RotaException refused) {
            return new Seen(0, 0, 0, refused);
        }
        int sent = 0;
        try {
            client.join("orders");
            for (; sent < 2; sent++) {
                client.send("orders", text("hello"));
            }
        } catch (RotaException lost) {
            check(lost instanceof Lost, lost);
        }
        int events = 0;
        while (true) {
            try {
                check(client.receive(PATIENCE) != null, "it hangs");
                events++;
            } catch (Lost lost) {
                Seen seen = new Seen(events, sent, client.unsettledBytes(), lost);
                equal(Tests.fails(Lost.class, client::receive).loss(), lost.loss());
                client.hangUp();
                return seen;
            }
        }
    }

    /**
     * Whatever the daemon has said up to a byte is told, and then the loss: of an end between two frames that it has ended, of one
     * within a frame that it was cut.
     */
    static void testCutsOfWhatTheDaemonSays() throws Exception {
        List<byte[]> steps = steps();
        int all = total(steps, 1);
        for (int cut = 0; cut <= all; cut++) {
            int says = cut;
            try (House house = new House()) {
                var script = house.play(() -> {
                    try (House.Peer peer = house.accept()) {
                        return act(peer, steps, says, total(steps, 0));
                    }
                });
                Seen seen = use(house);
                script.await();
                Inbox inbox = new Inbox();
                int left = says;
                for (int at = 1; at < steps.size(); at += 2) {
                    int most = Math.min(left, steps.get(at).length);
                    inbox.feed(ByteBuffer.wrap(steps.get(at), 0, most));
                    left -= most;
                }
                int events = 0;
                long credited = 0;
                for (Object frame = inbox.pull(); frame != null; frame = inbox.pull()) {
                    events += frame instanceof Event ? 1 : 0;
                    credited += frame instanceof Reply.Credit credit ? credit.bytes() : 0;
                }
                check(seen.events == events, "byte " + says + ": " + events + " events had come: " + seen);
                check(seen.end instanceof Lost, seen);
                Lost lost = (Lost) seen.end;
                boolean isCut = lost.loss() == Loss.FAILED && lost.getCause() instanceof EOFException;
                // A daemon that closes before it has read everything resets.
                boolean isReset = lost.loss() == Loss.FAILED && !isCut;
                check(isReset || isCut == inbox.isWithin(), "byte " + says + ": " + lost);
                check(isReset || isCut || lost.loss() == Loss.ENDED, "byte " + says + ": " + lost);
                check(seen.unsettled == 22L * seen.sent - credited, "byte " + says + ": " + seen);
            }
        }
    }

    /** A daemon that hears up to a byte only has heard a first part of what the client says, which ends all the same. */
    static void testCutsOfWhatTheClientSays() throws Exception {
        List<byte[]> steps = steps();
        ByteArrayOutputStream whole = new ByteArrayOutputStream();
        for (int at = 0; at < steps.size(); at += 2) {
            whole.writeBytes(steps.get(at));
        }
        for (int cut = 0; cut < whole.size(); cut++) {
            int hears = cut;
            try (House house = new House()) {
                var script = house.play(() -> {
                    try (House.Peer peer = house.accept()) {
                        return act(peer, steps, total(steps, 1), hears);
                    }
                });
                Seen seen = use(house);
                check(seen.end instanceof Lost || seen.end instanceof RotaException.NoConnection, seen);
                byte[] heard = script.await();
                check(Arrays.equals(heard, Arrays.copyOf(whole.toByteArray(), hears)), "byte " + hears);
            }
        }
    }

    private static List<String> numbers(House.Peer peer) throws IOException {
        List<String> numbers = new ArrayList<>();
        for (House.Peer.Frame frame = peer.frame(); frame.kind() == 4; frame = peer.frame()) {
            numbers.add(new String(frame.body(), 12, frame.body().length - 12, StandardCharsets.US_ASCII));
        }
        return numbers;
    }

    /** At each cut the client connects again: it says what is unsure, and sends nothing twice. */
    static void testNothingIsSentTwiceBehindACut() throws Exception {
        List<byte[]> steps = steps();
        int all = steps.get(3).length + steps.get(5).length;
        for (int cut = 0; cut <= all; cut += 3) {
            int says = cut;
            try (House house = new House()) {
                var script = house.play(() -> {
                    List<String> numbers;
                    try (House.Peer peer = house.accept()) {
                        peer.expect(1);
                        peer.tell(steps.get(1));
                        peer.expect(Frames.JOIN);
                        byte[] rest = Arrays.copyOf(steps.get(3), all);
                        System.arraycopy(steps.get(5), 0, rest, steps.get(3).length, steps.get(5).length);
                        peer.tell(Arrays.copyOf(rest, says));
                        // One direction ends: what comes by then in the other is some part of what was sent.
                        peer.channel().shutdownOutput();
                        numbers = numbers(peer);
                    }
                    try (House.Peer peer = house.accept()) {
                        peer.welcome(5000);
                        peer.join("orders");
                        numbers.addAll(numbers(peer));
                    }
                    return numbers;
                });
                Options options = new Options().name("alice").membership(true).timeout(PATIENCE);
                Reconnecting client = ReconnectingTest.connect(house, options);
                int sent = 0;
                try {
                    client.join("orders");
                    for (; sent < 2; sent++) {
                        client.send("orders", text(String.valueOf(sent + 1)));
                    }
                } catch (Lost lost) {
                    check(sent < 2, lost);
                }
                Event.Reconnected gap = ReconnectingTest.untilGap(client);
                check(gap.unsettledBytes() <= 18L * sent, gap);
                client.send("orders", text("3"));
                client.close();
                List<String> numbers = script.await();
                String last = "0";
                for (String number : numbers) {
                    check(number.compareTo(last) > 0, numbers);
                    last = number;
                }
                equal(last, "3");
            }
        }
    }
}
