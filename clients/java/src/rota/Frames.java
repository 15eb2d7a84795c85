package rota;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** The frames of a client. */
final class Frames {
    static final int LOWEST_VERSION = 1;
    static final int HIGHEST_VERSION = 3;
    /** Bytes of a frame's length and kind. */
    static final int HEAD_BYTES = 5;
    /** The largest frame of a daemon, by its length field: a message of 64 MiB. */
    static final int MAX_REPLY_BYTES = (64 << 20) + 3243;

    static final int JOIN = 2;
    static final int LEAVE = 3;
    static final int LIST = 5;
    private static final int HELLO = 1;
    private static final int SEND = 4;
    private static final int BYE = 6;

    private Frames() {}

    private static ByteBuffer start(int kind, int body, int payload) {
        ByteBuffer out = ByteBuffer.allocate(HEAD_BYTES + body).order(ByteOrder.LITTLE_ENDIAN);
        return out.putInt(1 + body + payload).put((byte) kind);
    }

    private static void putText(ByteBuffer out, byte[] text) {
        out.put((byte) text.length).put(text);
    }

    /** Never asks for memory: no descriptor can come with what this client reads. */
    static byte[] hello(String name, boolean membership, WhenSlow slow) {
        byte[] text = Names.bytes(name);
        ByteBuffer out = start(HELLO, 4 + 2 + 2 + 1 + 1 + text.length, 0);
        out.put("ROTA".getBytes(StandardCharsets.US_ASCII));
        out.putShort((short) LOWEST_VERSION).putShort((short) HIGHEST_VERSION);
        out.put((byte) (slow.bits | (membership ? 1 : 0)));
        putText(out, text);
        return out.array();
    }

    /** A join, a leave or a list; an empty group lists all. */
    static byte[] request(int kind, int request, String group) {
        byte[] text = Names.bytes(group);
        ByteBuffer out = start(kind, 4 + 1 + text.length, 0).putInt(request);
        putText(out, text);
        return out.array();
    }

    static byte[] bye() {
        return start(BYE, 0, 0).array();
    }

    /** A send frame without its payload, which has so many bytes. */
    static byte[] sendHead(Envelope envelope, Service usual, int payload) throws RotaException.Invalid {
        List<String> to = envelope.to();
        if (to.isEmpty() || to.size() > Names.MOST_DESTINATIONS) {
            throw new RotaException.Invalid("a message needs from 1 to 100 destinations");
        }
        if (envelope.kind() < 0 || envelope.kind() > 0xffff) {
            throw new RotaException.Invalid("a kind is a number from 0 to 65535");
        }
        int room = 5;
        for (String name : to) {
            Names.check(name, Names.wrongDestination(name));
            room += 1 + name.length();
        }
        Service service = envelope.service() == null ? usual : envelope.service();
        ByteBuffer out = start(SEND, room, payload);
        out.put((byte) service.number()).put((byte) (envelope.selfDiscard() ? 1 : 0));
        out.putShort((short) envelope.kind()).put((byte) to.size());
        for (String name : to) {
            putText(out, Names.bytes(name));
        }
        return out.array();
    }
}
