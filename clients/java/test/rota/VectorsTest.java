package rota;

import static rota.Tests.check;
import static rota.Tests.equal;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The frames are those of docs/protocols/vectors. */
final class VectorsTest {
    private VectorsTest() {}

    /** The frame of a client that a vector describes; null if this client never says it. */
    private static byte[] encode(Vector vector) throws RotaException {
        switch (vector.one("is")) {
            case "hello" -> {
                if (vector.flag("memory") || vector.number("highest") != Frames.HIGHEST_VERSION) {
                    return null;
                }
                equal(vector.number("lowest"), Frames.LOWEST_VERSION);
                return Frames.hello(vector.orEmpty("client"), vector.flag("membership"), vector.whenSlow());
            }
            case "join" -> {
                return Frames.request(Frames.JOIN, vector.number("request"), vector.one("group"));
            }
            case "leave" -> {
                return Frames.request(Frames.LEAVE, vector.number("request"), vector.one("group"));
            }
            case "list" -> {
                return Frames.request(Frames.LIST, vector.number("request"), vector.orEmpty("group"));
            }
            case "bye" -> {
                return Frames.bye();
            }
            case "send" -> {
                byte[] payload = vector.bytes("payload");
                byte[] head = Frames.sendHead(vector.envelope(), Service.AGREED, payload.length);
                byte[] all = Arrays.copyOf(head, head.length + payload.length);
                System.arraycopy(payload, 0, all, head.length, payload.length);
                return all;
            }
            default -> throw new AssertionError(vector.name());
        }
    }

    static void testRequestsAreThoseOfTheVectors() throws RotaException {
        int encoded = 0;
        for (Vector vector : Vector.all("requests.txt").values()) {
            byte[] found = encode(vector);
            if (found != null) {
                encoded++;
                check(Arrays.equals(found, vector.bytes("bytes")), vector.name() + " is encoded as " + Vector.runs(found));
            }
        }
        check(encoded >= 20, encoded);
    }

    private static String yes(boolean flag) {
        return flag ? "yes" : "no";
    }

    private static void each(List<String> lines, String key, List<?> values) {
        values.forEach(value -> lines.add(key + " " + value));
    }

    private static void reason(List<String> lines, Code code, String text) {
        lines.add("code " + code.number());
        lines.add("text \"" + text + "\"");
    }

    private static String unsigned(int number) {
        return Integer.toUnsignedString(number);
    }

    private static List<String> describe(Object reply) {
        List<String> lines = new ArrayList<>(List.of("from daemon"));
        if (reply instanceof Event event) {
            describe(event, lines);
        } else if (reply instanceof Reply.Welcome r) {
            each(lines, "is", List.of("welcome"));
            lines.add("version " + r.version());
            lines.add("client " + r.name());
            lines.add("credit " + r.credit());
            lines.add("largest-payload " + r.largestPayload());
            lines.add("memory " + r.memory());
        } else if (reply instanceof Reply.Refused r) {
            lines.add("is refused");
            reason(lines, r.code(), r.text());
        } else if (reply instanceof Reply.Done r) {
            lines.add("is done");
            lines.add("request " + unsigned(r.request()));
        } else if (reply instanceof Reply.Failed r) {
            lines.add("is failed");
            lines.add("request " + unsigned(r.request()));
            reason(lines, r.code(), r.text());
        } else if (reply instanceof Reply.Credit r) {
            lines.add("is credit");
            lines.add("credit " + r.bytes());
        } else if (reply instanceof Reply.Groups r) {
            lines.add("is groups");
            lines.add("request " + unsigned(r.request()));
            r.groups().forEach(group -> lines.add("group " + group.group() + " " + group.members()));
        } else if (reply instanceof Reply.Members r) {
            lines.add("is members");
            lines.add("request " + unsigned(r.request()));
            each(lines, "member", r.members());
        } else if (reply instanceof Reply.Goodbye r) {
            lines.add("is goodbye");
            reason(lines, r.code(), r.text());
        } else {
            lines.add("is " + reply);
        }
        return lines;
    }

    private static void describe(Event event, List<String> lines) {
        if (event instanceof Event.Message e) {
            lines.add("is message");
            lines.add("sender " + e.sender());
            lines.add("service " + e.service().name().toLowerCase());
            lines.add("self-discard " + yes(e.selfDiscard()));
            lines.add("message-kind " + e.kind());
            each(lines, "to", e.to());
            each(lines, "payload", Vector.runs(e.payload()));
        } else if (event instanceof Event.View e) {
            lines.add("is view");
            lines.add("group " + e.group());
            lines.add("view " + e.id());
            lines.add("cause " + e.cause().name().toLowerCase());
            lines.add("changed " + (e.changed() == null ? "-" : e.changed()));
            each(lines, "member", e.members());
            e.sets().forEach(set ->
                    lines.add("set " + set.stream().map(String::valueOf).collect(Collectors.joining(" "))));
            lines.add("own " + e.own());
        } else if (event instanceof Event.Transitional e) {
            lines.add("is transitional");
            lines.add("group " + e.group());
            lines.add("view " + e.view());
        } else if (event instanceof Event.SelfLeave e) {
            lines.add("is self-leave");
            lines.add("group " + e.group());
        } else if (event instanceof Event.Lagging e) {
            lines.add("is lagging");
            lines.add("waiting " + e.waiting());
            lines.add("limit " + e.limit());
        } else if (event instanceof Event.NotSent e) {
            lines.add("is not-sent");
            lines.add("message-kind " + e.kind());
            lines.add("to " + e.to());
            reason(lines, e.code(), e.text());
        } else if (event instanceof Event.Skipped e) {
            lines.add("is skipped");
            lines.add("messages " + e.messages());
            lines.add("payload-bytes " + e.bytes());
            each(lines, "group", e.groups());
        } else if (event instanceof Event.Excluded) {
            lines.add("is excluded");
        } else if (event instanceof Event.Included e) {
            lines.add("is included");
            lines.add("missed " + yes(e.missed()));
        }
    }

    /** The frames of bytes that come in pieces. */
    static List<Object> readAll(byte[] all, int piece) throws DecodeException {
        Inbox inbox = new Inbox();
        List<Object> frames = new ArrayList<>();
        for (int at = 0; at < all.length; at += piece) {
            inbox.feed(ByteBuffer.wrap(all, at, Math.min(piece, all.length - at)));
            for (Object frame = inbox.pull(); frame != null; frame = inbox.pull()) {
                frames.add(frame);
            }
        }
        check(!inbox.isWithin(), "a frame is not whole");
        return frames;
    }

    static void testRepliesAreThoseOfTheVectors() throws DecodeException {
        for (Vector vector : Vector.all("replies.txt").values()) {
            byte[] all = vector.bytes("bytes");
            for (int piece : new int[] {1, 5, all.length}) {
                List<Object> frames = readAll(all, piece);
                equal(frames.size(), 1);
                equal(describe(frames.get(0)), vector.fields());
            }
        }
    }

    static void testBytesThatAreNoFramesAreNone() {
        for (Vector vector : Vector.all("errors.txt").values()) {
            if (!vector.one("from").equals("daemon")) {
                continue;
            }
            byte[] all = vector.bytes("bytes");
            for (int piece : new int[] {1, all.length}) {
                DecodeException error = Tests.fails(DecodeException.class, () -> readAll(all, piece));
                check(error.why.equals(vector.one("why")), vector.name() + " is " + error.why);
            }
        }
    }

    /** Each bit of each frame, changed: an error or some frame, and no other exception. */
    static void testFlippedBitsAreReadOrRefused() {
        for (Vector vector : Vector.all("replies.txt").values()) {
            byte[] all = vector.bytes("bytes");
            for (int bit = 32; all.length <= 4096 && bit < 8 * all.length; bit++) {
                byte[] changed = all.clone();
                changed[bit / 8] ^= (byte) (1 << bit % 8);
                try {
                    equal(readAll(changed, changed.length).size(), 1);
                } catch (DecodeException refused) {
                    check(!refused.why.isEmpty(), vector.name());
                }
            }
        }
    }

    static void testTooManySkippedGroupsAreNoFrame() throws DecodeException {
        for (int more : new int[] {0, 1}) {
            int count = Reader.MOST_SKIPPED + more;
            ByteBuffer body = House.body(8 + 8 + 4 + 2 * count).putLong(-1).putLong(7).putInt(count);
            for (int at = 0; at < count; at++) {
                body.put((byte) 1).put((byte) 'g');
            }
            byte[] frame = House.framed(0x8f, body);
            if (more > 0) {
                equal(Tests.fails(DecodeException.class, () -> readAll(frame, frame.length)).why, "groups");
            } else {
                Event.Skipped skipped = (Event.Skipped) readAll(frame, frame.length).get(0);
                equal(skipped.groups().size(), count);
                // No number is negative.
                equal(skipped.messages(), Long.MAX_VALUE);
                equal(skipped.bytes(), 7L);
            }
        }
    }

    static void testConversationsAreReadInAnyPieces() throws DecodeException {
        Map<String, Vector> replies = Vector.all("replies.txt");
        for (Vector conversation : Vector.all("conversations.txt").values()) {
            List<String> expected = new ArrayList<>();
            for (String step : conversation.every("daemon")) {
                for (String name : step.split(" ")) {
                    expected.addAll(replies.get(name).fields());
                }
            }
            byte[] all = conversation.bytes("from-daemon");
            for (int piece : new int[] {1, 3, 64, all.length}) {
                List<String> found = new ArrayList<>();
                readAll(all, piece).forEach(frame -> found.addAll(describe(frame)));
                check(found.equals(expected), conversation.name() + " in pieces of " + piece + " differs");
            }
        }
    }
}
