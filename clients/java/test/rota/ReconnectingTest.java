package rota;

import static rota.ClientTest.message;
import static rota.ClientTest.text;
import static rota.Tests.PATIENCE;
import static rota.Tests.check;
import static rota.Tests.equal;
import static rota.Tests.fails;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import rota.RotaException.Lost;

/** Lost connections and their successors. */
final class ReconnectingTest {
    static final Backoff HASTY = new Backoff(Duration.ofMillis(2), Duration.ofMillis(20));

    private ReconnectingTest() {}

    static Reconnecting connect(House house, Options options) throws Exception {
        return Reconnecting.connect(house.path.toString(), options, HASTY);
    }

    static Event.Reconnected untilGap(Reconnecting client) throws Exception {
        while (true) {
            Event event = client.receive(PATIENCE);
            check(event != null, "it hangs");
            if (event instanceof Event.Reconnected gap) {
                return gap;
            }
        }
    }

    private static String payload(Event event) {
        return new String(message(event).payload(), StandardCharsets.UTF_8);
    }

    static void testALostConnectionIsFollowedByAGapInTheSameGroups() throws Exception {
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer first = house.accept()) {
                    first.welcome(1000);
                    first.join("orders");
                    first.join("stock");
                    first.expect(4);
                    first.tell(House.message("before"));
                }
                try (House.Peer refused = house.accept()) {
                    refused.expect(1);
                    refused.tell(House.reason(0x82, null, Code.NAME_IN_USE));
                }
                try (House.Peer second = house.accept()) {
                    second.welcome(1000);
                    second.join("orders");
                    byte[] request = second.expect(Frames.JOIN);
                    second.tell(House.message("after"), House.reason(0x84, request, Code.QUOTA));
                    second.untilGone();
                }
                return null;
            });
            Reconnecting client = connect(house, new Options().name("alice"));
            client.join("orders");
            client.join("stock");
            client.send("orders", text("lost"));
            equal(payload(client.receive(PATIENCE)), "before");
            Event.Reconnected gap = untilGap(client);
            equal(gap.unsettledBytes(), 21L);
            equal(gap.name(), "#alice#n1");
            equal(gap.notJoined().get("stock").code(), Code.QUOTA);
            equal(gap.notJoined().size(), 1);
            equal(payload(client.receive(PATIENCE)), "after");
            client.client().hangUp();
            script.await();
        }
    }

    /** A busy group that sends while the client joins the others again is no reason to begin once more: it would never end. */
    static void testWhatComesWhileGroupsAreJoinedAgainWaits() throws Exception {
        int count = 20;
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer first = house.accept()) {
                    first.welcome(1000);
                    first.join("orders");
                    first.join("stock");
                }
                try (House.Peer second = house.accept()) {
                    second.welcome(1000);
                    second.join("orders");
                    for (int at = 0; at < count; at++) {
                        second.tell(House.message("x".repeat(1000)));
                    }
                    second.join("stock");
                    second.untilGone();
                }
                return null;
            });
            Reconnecting client = connect(house, new Options().unreadBytes(1000));
            client.join("orders");
            client.join("stock");
            equal(untilGap(client).notJoined().size(), 0);
            for (int at = 0; at < count; at++) {
                equal(payload(client.receive(PATIENCE)).length(), 1000);
            }
            client.client().hangUp();
            script.await();
        }
    }

    static void testNothingIsSentBeforeTheGapWasSeen() throws Exception {
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer first = house.accept()) {
                    first.welcome(1000);
                }
                try (House.Peer second = house.accept()) {
                    second.welcome(1000);
                    String body = new String(second.expect(4), StandardCharsets.ISO_8859_1);
                    check(body.endsWith("after"), body);
                    second.untilGone();
                }
                return null;
            });
            Reconnecting client = connect(house, new Options());
            fails(Lost.class, () -> {
                while (true) {
                    client.send("orders", text("before"));
                }
            });
            fails(Lost.class, () -> client.send("orders", text("too early")));
            untilGap(client);
            client.send("orders", text("after"));
            client.client().flush();
            client.client().hangUp();
            script.await();
        }
    }

    static void testAGroupThatWasLeftIsNotJoinedAgain() throws Exception {
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer first = house.accept()) {
                    first.welcome(1000);
                    first.join("orders");
                    first.tell(House.done(first.expect(Frames.LEAVE)));
                }
                try (House.Peer second = house.accept()) {
                    second.welcome(1000);
                    second.expect(6);
                }
                return null;
            });
            Reconnecting client = connect(house, new Options());
            client.join("orders");
            client.leave("orders");
            check(client.receive(ChronoUnit.FOREVER.getDuration()) instanceof Event.Reconnected, "no gap");
            client.close();
            script.await();
        }
    }

    static void testAGroupThatIsLeftWhileItIsJoinedAgainIsLeft() throws Exception {
        try (House house = new House()) {
            CountDownLatch begun = new CountDownLatch(1);
            CountDownLatch left = new CountDownLatch(1);
            var script = house.play(() -> {
                try (House.Peer first = house.accept()) {
                    first.welcome(1000);
                    first.join("orders");
                    first.join("stock");
                }
                try (House.Peer second = house.accept()) {
                    second.welcome(1000);
                    second.join("orders");
                    byte[] request = second.request(Frames.JOIN, "stock");
                    begun.countDown();
                    check(left.await(PATIENCE.toSeconds(), TimeUnit.SECONDS), "it hangs");
                    second.tell(House.done(request));
                    second.leave("orders");
                    second.leave("stock");
                    second.untilGone();
                }
                return null;
            });
            Reconnecting client = connect(house, new Options());
            client.join("orders");
            client.join("stock");
            var leaving = house.play(() -> {
                check(begun.await(PATIENCE.toSeconds(), TimeUnit.SECONDS), "it hangs");
                // There is no connection yet.
                fails(Lost.class, () -> client.leave("orders"));
                fails(Lost.class, () -> client.leave("stock"));
                left.countDown();
                return null;
            });
            equal(untilGap(client).notJoined().size(), 0);
            leaving.await();
            client.client().hangUp();
            script.await();
        }
    }

    /** A leave that the daemon refuses is no reason to give up: the next connection does not join the group. */
    static void testALeaveThatIsRefusedBeginsAnotherAttempt() throws Exception {
        try (House house = new House()) {
            CountDownLatch left = new CountDownLatch(1);
            CountDownLatch begun = new CountDownLatch(1);
            var script = house.play(() -> {
                try (House.Peer first = house.accept()) {
                    first.welcome(1000);
                    first.join("orders");
                }
                try (House.Peer second = house.accept()) {
                    second.welcome(1000);
                    byte[] request = second.request(Frames.JOIN, "orders");
                    begun.countDown();
                    check(left.await(PATIENCE.toSeconds(), TimeUnit.SECONDS), "it hangs");
                    second.tell(House.done(request));
                    second.tell(House.reason(0x84, second.request(Frames.LEAVE, "orders"), Code.QUOTA));
                    second.untilGone();
                }
                try (House.Peer third = house.accept()) {
                    third.welcome(1000);
                    third.expect(6);
                }
                return null;
            });
            Reconnecting client = connect(house, new Options());
            client.join("orders");
            var leaving = house.play(() -> {
                check(begun.await(PATIENCE.toSeconds(), TimeUnit.SECONDS), "it hangs");
                fails(Lost.class, () -> client.leave("orders"));
                left.countDown();
                return null;
            });
            untilGap(client);
            leaving.await();
            client.close();
            script.await();
        }
    }

    static void testWhatComesWhileGroupsAreJoinedAgainHasAnEnd() throws Exception {
        long usual = Reconnecting.earlyBytes;
        Reconnecting.earlyBytes = 5000;
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer first = house.accept()) {
                    first.welcome(1000);
                    first.join("orders");
                }
                try (House.Peer second = house.accept()) {
                    second.welcome(1000);
                    byte[] request = second.request(Frames.JOIN, "orders");
                    for (int at = 0; at < 200; at++) {
                        second.tell(House.message("x".repeat(1000)));
                    }
                    // Nothing behind so much is read.
                    second.tell(House.done(request));
                    second.untilGone();
                } catch (IOException gone) {
                    // So it has, in the middle.
                }
                try (House.Peer third = house.accept()) {
                    third.welcome(1000);
                    third.join("orders");
                    third.untilGone();
                }
                return null;
            });
            Options options = new Options().unreadBytes(1000).timeout(Duration.ofMillis(200));
            Reconnecting client = connect(house, options);
            client.join("orders");
            equal(untilGap(client).notJoined().size(), 0);
            equal(client.receive(Duration.ofMillis(20)), null);
            client.client().hangUp();
            script.await();
        } finally {
            Reconnecting.earlyBytes = usual;
        }
    }

    static void testADaemonThatComesBackIsFound() throws Exception {
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.welcome(1000);
                }
                return null;
            });
            Reconnecting client = connect(house, new Options());
            script.await();
            house.listener.close();
            equal(client.receive(Duration.ofMillis(60)), null);
            equal(client.client(), null);
            house.open();
            var again = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.welcome(1000);
                    peer.untilGone();
                }
                return null;
            });
            untilGap(client);
            client.client().hangUp();
            again.await();
        }
    }

    static void testARefusalThatWillStayEndsTheAttempts() throws Exception {
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.welcome(1000);
                }
                for (int twice = 0; twice < 2; twice++) {
                    try (House.Peer peer = house.accept()) {
                        peer.expect(1);
                        peer.tell(House.reason(0x82, null, Code.NOT_ALLOWED));
                    }
                }
                return null;
            });
            Reconnecting client = connect(house, new Options());
            for (int twice = 0; twice < 2; twice++) {
                equal(fails(RotaException.Refused.class, client::receive).code(), Code.NOT_ALLOWED);
            }
            script.await();
            client.close();
        }
    }

    static void testClosingEndsAttempts() throws Exception {
        try (House house = new House()) {
            var script = house.play(() -> {
                try (House.Peer peer = house.accept()) {
                    peer.welcome(1000);
                }
                return null;
            });
            Reconnecting client = connect(house, new Options());
            script.await();
            house.listener.close();
            equal(client.receive(Duration.ofMillis(20)), null);
            var ended = house.play(() -> fails(Lost.class, client::receive));
            Thread.sleep(10);
            client.close();
            equal(ended.await().loss(), Lost.Loss.ENDED);
        }
    }

    static void testPausesDoubleUpToTheLongestAndAreNeverLessThanHalf() {
        long first = Backoff.DEFAULT.first().toNanos();
        long longest = Backoff.DEFAULT.longest().toNanos();
        equal(Backoff.DEFAULT.pause(0, 0), first / 2);
        equal(Backoff.DEFAULT.pause(0, 1), first);
        equal(Backoff.DEFAULT.pause(2, 1), 4 * first);
        for (int attempts : List.of(10, 40, Integer.MAX_VALUE)) {
            equal(Backoff.DEFAULT.pause(attempts, 0), longest / 2);
            equal(Backoff.DEFAULT.pause(attempts, 1), longest);
        }
        Duration forever = ChronoUnit.FOREVER.getDuration();
        for (Backoff patient : List.of(new Backoff(forever, forever), new Backoff(Duration.ofDays(9000), forever))) {
            equal(patient.pause(1, 1), Options.nanos(forever));
        }
    }
}
