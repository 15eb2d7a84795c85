package rota;

import static rota.Tests.PATIENCE;
import static rota.Tests.check;
import static rota.Tests.equal;
import static rota.Tests.fails;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.channels.Selector;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLContextSpi;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLServerSocketFactory;
import javax.net.ssl.SSLSessionContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManager;
import rota.RotaException.Lost;
import rota.RotaException.Lost.Loss;

/** A client beside a scripted daemon. */
final class ClientTest {
    private ClientTest() {}

    static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static Event.Message message(Event event) {
        check(event instanceof Event.Message, event + " is no message");
        return (Event.Message) event;
    }

    static String nextPayload(Client client) throws Exception {
        return new String(message(client.receive(PATIENCE)).payload(), StandardCharsets.UTF_8);
    }

    private static byte[] frames(Map<String, Vector> all, String step) {
        List<byte[]> parts = new ArrayList<>();
        int bytes = 0;
        for (String name : step.split(" ")) {
            byte[] part = all.get(name).bytes("bytes");
            parts.add(part);
            bytes += part.length;
        }
        byte[] joined = new byte[bytes];
        int at = 0;
        for (byte[] part : parts) {
            System.arraycopy(part, 0, joined, at, part.length);
            at += part.length;
        }
        return joined;
    }

    /** Does what the client of a conversation does. */
    private static void follow(Client client, Vector conversation) throws Exception {
        Map<String, Vector> requests = Vector.all("requests.txt");
        List<String> steps = conversation.every("client");
        for (String step : steps.subList(1, steps.size())) {
            for (String name : step.split(" ")) {
                Vector frame = requests.get(name);
                try {
                    switch (frame.one("is")) {
                        case "join" -> client.join(frame.one("group"));
                        case "leave" -> client.leave(frame.one("group"));
                        case "list" -> {
                            if (frame.orEmpty("group").isEmpty()) {
                                equal(client.groups().get(0), new GroupSize("orders", 2));
                            } else {
                                equal(client.members(frame.one("group")), List.of("#alice#n1", "#bob#n2"));
                            }
                        }
                        case "send" -> client.send(frame.envelope(), frame.bytes("payload"));
                        case "bye" -> client.close();
                        default -> throw new AssertionError(name);
                    }
                } catch (RotaException.Failed would) {
                    equal(would.code(), Code.QUOTA);
                }
            }
        }
    }

    static void testTheClientSaysWhatTheConversationsSay() throws Exception {
        Map<String, Vector> requests = Vector.all("requests.txt");
        Map<String, Vector> replies = Vector.all("replies.txt");
        for (String name : List.of("relayed", "not-joined")) {
            Vector conversation = Vector.all("conversations.txt").get(name);
            try (House house = new House()) {
                var script = house.play(() -> {
                    try (House.Peer peer = house.accept()) {
                        List<byte[]> said = new ArrayList<>();
                        for (String[] line : conversation.lines()) {
                            if (line[0].equals("client")) {
                                said.add(peer.read(frames(requests, line[1]).length));
                            } else if (line[0].equals("daemon")) {
                                peer.tell(frames(replies, line[1]));
                            }
                        }
                        return said;
                    }
                });
                Vector hello = requests.get(conversation.every("client").get(0));
                Options options = new Options().name(hello.one("client")).membership(hello.flag("membership"));
                follow(options.timeout(PATIENCE).connect(house.path.toString()), conversation);
                byte[] expected = conversation.bytes("from-client");
                int at = 0;
                for (byte[] said : script.await()) {
                    check(Arrays.equals(said, Arrays.copyOfRange(expected, at, at + said.length)), "at " + at);
                    at += said.length;
                }
                equal(at, expected.length);
            }
        }
    }

    static void testARefusalIsSaid() throws Exception {
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.expect(1);
                    peer.tell(Vector.all("replies.txt").get("refused-name-in-use").bytes("bytes"));
                }
                return null;
            });
            RotaException.Refused refused =
                    fails(RotaException.Refused.class, () -> new Options().connect(house.path.toString()));
            equal(refused.code(), Code.NAME_IN_USE);
            check(refused.mayPass(), "the other may go");
            script.await();
        }
    }

    static void testWhatHadComeIsDeliveredBeforeAGoodbye() throws Exception {
        Map<String, Vector> replies = Vector.all("replies.txt");
        List<String> steps = Vector.all("conversations.txt").get("shutting-down").every("daemon");
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.expect(1);
                    peer.tell(frames(replies, steps.get(0)));
                    peer.expect(Frames.JOIN);
                    peer.tell(frames(replies, steps.get(1)));
                    peer.untilGone();
                }
                return null;
            });
            Client client = new Options().name("alice").connect(house.path.toString());
            client.join("orders");
            equal(nextPayload(client), "hello");
            equal(client.receive(PATIENCE), new Event.Skipped(3, 1L << 32, List.of("orders", "stock")));
            for (int twice = 0; twice < 2; twice++) {
                Lost lost = fails(Lost.class, client::receive);
                equal(lost.loss(), Loss.GOODBYE);
                equal(lost.code(), Code.SHUTTING_DOWN);
            }
            equal(fails(Lost.class, () -> client.send("orders", text(""))).loss(), Loss.GOODBYE);
            client.hangUp();
            script.await();
        }
    }

    static void testSendsWaitForCredit() throws Exception {
        ExecutorService other = Executors.newSingleThreadExecutor();
        try (House house = new House()) {
            CountDownLatch go = new CountDownLatch(1);
            var script = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.welcome(50);
                    // Two frames of 22 bytes fit.
                    peer.expect(4);
                    peer.expect(4);
                    check(go.await(PATIENCE.toSeconds(), TimeUnit.SECONDS), "it hangs");
                    peer.tell(House.credit(44));
                    peer.expect(4);
                    peer.untilGone();
                }
                return null;
            });
            Client client = new Options().connect(house.path.toString());
            client.send("orders", text("hello"));
            client.send("orders", text("hello"));
            fails(RotaException.WouldBlock.class, () -> client.trySend(Envelope.to("orders"), text("hello")));
            equal(client.unsettledBytes(), 44L);
            Future<?> third = other.submit(() -> {
                client.send("orders", text("third"));
                return null;
            });
            Thread.sleep(20);
            check(!third.isDone(), "there is no credit");
            go.countDown();
            third.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
            client.flush();
            client.hangUp();
            script.await();
        } finally {
            other.shutdownNow();
        }
    }

    static void testWhatADaemonAllowsHasAnEnd() throws Exception {
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.welcome(-1, -1);
                    peer.untilGone();
                }
                return null;
            });
            Client client = new Options().connect(house.path.toString());
            equal(client.credit(), Client.MOST_BYTES);
            equal(client.largestPayload(), Client.MOST_BYTES);
            client.hangUp();
            script.await();
        }
    }

    /** Otherwise a daemon that reads nothing could fill the memory of a client that never waits. */
    static void testCreditForWhatWasNotReadIsNone() throws Exception {
        try (House house = new House()) {
            CountDownLatch go = new CountDownLatch(1);
            var script = house.play(() -> {
                int read = 0;
                try (House.Peer peer = house.accept()) {
                    peer.welcome(50_000);
                    for (int at = 0; at < 4000; at++) {
                        peer.tell(House.credit(-1));
                    }
                    while (go.getCount() > 0) {
                        peer.tell(House.credit(-1));
                        Thread.sleep(1);
                    }
                    while (peer.frame().kind() == 4) {
                        read++;
                    }
                }
                return read;
            });
            Client client = new Options().connect(house.path.toString());
            int sent = 0;
            boolean hadAll = false;
            while (true) {
                try {
                    client.trySend(Envelope.to("orders"), new byte[5000]);
                    sent++;
                    hadAll = false;
                    check(sent < 4000, "it waits in memory");
                } catch (RotaException.WouldBlock none) {
                    if (hadAll) {
                        break;
                    }
                    while (client.unsettledBytes() > 0) {
                        Thread.sleep(1);
                    }
                    hadAll = true;
                }
            }
            go.countDown();
            client.send("orders", new byte[5000]);
            client.flush();
            client.hangUp();
            equal(script.await(), sent + 1);
        }
    }

    static void testTimeOutsMayBeLongerThanTimeIs() throws Exception {
        Duration forever = ChronoUnit.FOREVER.getDuration();
        equal(Options.nanos(forever), Duration.ofDays(10_000).toNanos());
        equal(Options.nanos(forever.negated()), 0L);
        equal(Options.nanos(Duration.ofNanos(7)), 7L);
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.welcome(50);
                    peer.join("orders");
                    peer.tell(House.message("soon"));
                    peer.expect(6);
                }
                return null;
            });
            Client client = new Options().timeout(forever).connect(house.path.toString());
            client.join("orders");
            equal(new String(message(client.receive(forever)).payload(), StandardCharsets.UTF_8), "soon");
            equal(client.receive(forever.negated()), null);
            client.close();
            script.await();
        }
    }

    /** An error ends the client's thread, as one does for which there is no memory: nobody else tells those that wait. */
    static void testAnErrorInTheThreadEndsTheWait() throws Exception {
        try (ServerSocket open = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            Options options = new Options().tls(Tls.of(new Exhausted())).timeout(PATIENCE);
            RotaException.NoConnection none = fails(
                    RotaException.NoConnection.class, () -> options.connect("tls:127.0.0.1:" + open.getLocalPort()));
            check(none.getCause() instanceof OutOfMemoryError, none);
        }
    }

    /** A context of TLS for whose engines there is no memory. */
    private static final class Exhausted extends SSLContext {
        Exhausted() {
            super(new Engines(), null, "none");
        }

        private static final class Engines extends SSLContextSpi {
            private static OutOfMemoryError none() {
                return new OutOfMemoryError("for a test");
            }

            @Override
            protected void engineInit(KeyManager[] keys, TrustManager[] trust, SecureRandom random) {
                throw none();
            }

            @Override
            protected SSLSocketFactory engineGetSocketFactory() {
                throw none();
            }

            @Override
            protected SSLServerSocketFactory engineGetServerSocketFactory() {
                throw none();
            }

            @Override
            protected SSLEngine engineCreateSSLEngine() {
                throw none();
            }

            @Override
            protected SSLEngine engineCreateSSLEngine(String host, int port) {
                throw none();
            }

            @Override
            protected SSLSessionContext engineGetServerSessionContext() {
                throw none();
            }

            @Override
            protected SSLSessionContext engineGetClientSessionContext() {
                throw none();
            }
        }
    }

    static void testAnInterruptEndsAWaitAndNothingElse() throws Exception {
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.welcome(20);
                    peer.expect(4);
                    peer.tell(House.credit(100));
                    peer.expect(4);
                    peer.tell(House.message("still here"));
                    peer.untilGone();
                }
                return null;
            });
            Client client = new Options().connect(house.path.toString());
            Thread.currentThread().interrupt();
            fails(InterruptedException.class, client::receive);
            client.send("orders", text("more than the credit"));
            client.send("orders", text("hello"));
            equal(nextPayload(client), "still here");
            client.hangUp();
            script.await();
        }
    }

    static void testWhatCannotBeSentIsSaidAndNothingIsSent() throws Exception {
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.welcome(5000);
                    peer.expect(6);
                }
                return null;
            });
            Client client = new Options().connect(house.path.toString());
            for (String to : List.of("", "a b", "#alice", "#alice#", "##n1", "g".repeat(32), "#elevenchars#n1", "gr\u00fcn")) {
                fails(RotaException.Invalid.class, () -> client.send(to, text("")));
                fails(RotaException.Invalid.class, () -> client.join(to));
            }
            equal(fails(RotaException.TooLarge.class, () -> client.send("g", new byte[5001])).limit(), 5000);
            for (int count : new int[] {0, 101}) {
                Envelope envelope = new Envelope(Collections.nCopies(count, "g"), null, 0, false);
                fails(RotaException.Invalid.class, () -> client.send(envelope, text("")));
            }
            client.close();
            client.close();
            fails(Lost.class, () -> client.send("g", text("")));
            script.await();
        }
    }

    static void testSendsOfManyThreadsAreWhole() throws Exception {
        int writers = 8;
        int each = 200;
        ExecutorService all = Executors.newFixedThreadPool(writers);
        try (House house = new House()) {
            var script = house.play(() -> {
                Map<String, Integer> seen = new HashMap<>();
                try (House.Peer peer = house.accept()) {
                    peer.welcome(500);
                    for (int at = 0; at < writers * each; at++) {
                        byte[] body = peer.expect(4);
                        String[] words = new String(body, 7, body.length - 7, StandardCharsets.UTF_8).split(" ");
                        equal(Integer.parseInt(words[1]), seen.merge(words[0], 1, Integer::sum) - 1);
                        peer.tell(House.credit(body.length + 5));
                    }
                    peer.untilGone();
                }
                return seen;
            });
            Client client = new Options().connect(house.path.toString());
            List<Future<?>> ends = new ArrayList<>();
            for (int writer = 0; writer < writers; writer++) {
                int me = writer;
                ends.add(all.submit(() -> {
                    for (int at = 0; at < each; at++) {
                        client.send("g", text(me + " " + at));
                    }
                    return null;
                }));
            }
            for (Future<?> end : ends) {
                end.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
            }
            client.close();
            equal(script.await().size(), writers);
        } finally {
            all.shutdownNow();
        }
    }

    static void testTooMuchUnreadStopsReadingAndIsSaid() throws Exception {
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.welcome(50);
                    peer.expect(4);
                    for (int at = 0; at < 300; at++) {
                        peer.tell(House.message("x".repeat(1000)));
                    }
                    peer.tell(House.credit(22));
                    peer.expect(4);
                    peer.untilGone();
                }
                return null;
            });
            Options options = new Options().unreadBytes(5000).timeout(Duration.ofMillis(200));
            Client client = options.connect(house.path.toString());
            client.send("orders", text("hello"));
            fails(RotaException.Unread.class, () -> client.send("orders", new byte[100]));
            for (int at = 0; at < 300; at++) {
                equal(nextPayload(client).length(), 1000);
            }
            client.send("orders", new byte[100]);
            client.flush();
            client.hangUp();
            script.await();
        }
    }

    static void testAnAnswerThatDoesNotComeIsSaid() throws Exception {
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.welcome(50);
                    byte[] late = peer.expect(Frames.JOIN);
                    peer.join("stock");
                    peer.tell(House.done(late), House.message("behind"));
                    peer.untilGone();
                }
                return null;
            });
            Client client = new Options().timeout(Duration.ofMillis(200)).connect(house.path.toString());
            fails(RotaException.TimedOut.class, () -> client.join("orders"));
            client.join("stock");
            equal(nextPayload(client), "behind");
            client.hangUp();
            script.await();
        }
    }

    static void testADaemonThatDoesNotAnswerAHelloIsSaid() throws Exception {
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.untilGone();
                }
                return null;
            });
            Options options = new Options().timeout(Duration.ofMillis(50));
            fails(RotaException.TimedOut.class, () -> options.connect(house.path.toString()));
            script.await();
        }
    }

    static void testTcpLeavesThisMachineOnlyWhenTold() {
        fails(RotaException.Insecure.class, () -> new Options().connect("tcp:203.0.113.1:4805"));
        fails(RotaException.NoTls.class, () -> new Options().connect("tls:localhost:4805"));
        fails(RotaException.NoConnection.class, () -> new Options().connect("/nowhere/rota.sock"));
        fails(RotaException.Invalid.class, () -> new Options().connect("tcp:localhost"));
    }

    static void testAnAddressThatNothingAnswersForKeepsNobodyFromTheNext() throws Exception {
        InetAddress here = InetAddress.getByName("127.0.0.1");
        int none;
        try (ServerSocket closed = new ServerSocket(0, 1, here)) {
            none = closed.getLocalPort();
        }
        InetSocketAddress nobody = new InetSocketAddress(here, none);
        try (ServerSocket open = new ServerSocket(0, 1, here);
                Selector selector = Selector.open()) {
            InetSocketAddress somebody = new InetSocketAddress(here, open.getLocalPort());
            Dial.connectFirst(List.of(nobody, nobody, somebody), selector, () -> false).close();
            fails(java.io.IOException.class, () -> Dial.connectFirst(List.of(nobody, nobody), selector, () -> false));
        }
    }

    static void testBothVersionsOfAddressesAreTriedInTurns() throws Exception {
        List<InetAddress> addresses = new ArrayList<>();
        for (String text : List.of("::1", "::2", "::3", "1.0.0.1")) {
            addresses.add(InetAddress.getByName(text));
        }
        List<InetAddress> turns = Dial.inTurns(addresses);
        equal(turns, List.of(addresses.get(0), addresses.get(3), addresses.get(1), addresses.get(2)));
    }

    static void testHangingUpEndsAllThatWait() throws Exception {
        ExecutorService all = Executors.newFixedThreadPool(3);
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.welcome(20);
                    peer.untilGone();
                }
                return null;
            });
            Client client = new Options().connect(house.path.toString());
            client.send("orders", text("more than the credit"));
            List<Future<Lost>> ends = new ArrayList<>();
            ends.add(all.submit(() -> fails(Lost.class, () -> client.send("orders", text("")))));
            ends.add(all.submit(() -> fails(Lost.class, () -> client.join("orders"))));
            ends.add(all.submit(() -> fails(Lost.class, client::receive)));
            Thread.sleep(10);
            client.hangUp();
            for (Future<Lost> end : ends) {
                equal(end.get(PATIENCE.toSeconds(), TimeUnit.SECONDS).loss(), Loss.ENDED);
            }
            script.await();
        } finally {
            all.shutdownNow();
        }
    }

    /**
     * Closing says that the daemon has read everything only where it has: not where this side has hung up meanwhile, and not where
     * something could not be written.
     */
    static void testClosingClaimsNothingThatIsNotSo() throws Exception {
        ExecutorService other = Executors.newSingleThreadExecutor();
        try (House house = new House()) {
            CountDownLatch over = new CountDownLatch(1);
            CountDownLatch begun = new CountDownLatch(1);
            var script = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.welcome(5000);
                    // It says that it goes, and waits for an answer.
                    check(peer.frame().kind() != 0, "it says nothing");
                    begun.countDown();
                    check(over.await(PATIENCE.toSeconds(), TimeUnit.SECONDS), "it hangs");
                }
                try (House.Peer peer = house.accept()) {
                    peer.welcome(1 << 20);
                    peer.expect(4);
                    // It reads nothing more, and ends.
                    Thread.sleep(20);
                }
                return null;
            });
            Client first = new Options().connect(house.path.toString());
            Future<Lost> closed = other.submit(() -> fails(Lost.class, first::close));
            check(begun.await(PATIENCE.toSeconds(), TimeUnit.SECONDS), "it does not close");
            first.hangUp();
            closed.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
            over.countDown();
            Client second = new Options().connect(house.path.toString());
            fails(Lost.class, () -> {
                for (int at = 0; at < 100; at++) {
                    second.send("orders", new byte[5000]);
                }
                second.close();
            });
            second.hangUp();
            script.await();
        } finally {
            other.shutdownNow();
        }
    }
}
