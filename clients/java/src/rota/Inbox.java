package rota;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Collects bytes of a daemon's stream and gives its frames. Its memory is at most twice what has arrived. */
final class Inbox {
    /** Room that an empty inbox keeps. */
    private static final int KEPT_BYTES = 64 << 10;

    private byte[] bytes = new byte[0];
    /** What has not been read. */
    private int from;
    private int to;
    private DecodeException failed;

    void feed(ByteBuffer more) {
        int count = more.remaining();
        if (failed != null) {
            more.position(more.limit());
            return;
        }
        if (from > 0) {
            System.arraycopy(bytes, from, bytes, 0, to - from);
            to -= from;
            from = 0;
        }
        if (bytes.length - to < count) {
            bytes = Arrays.copyOf(bytes, (int) Math.max((long) to + count, Math.min(2L * to, Integer.MAX_VALUE - 8)));
        }
        more.get(bytes, to, count);
        to += count;
    }

    /** The next frame, an {@link Event} or a {@link Reply}; null if it is not whole. After an error all calls fail. */
    Object pull() throws DecodeException {
        if (failed != null) {
            throw failed;
        }
        try {
            return read();
        } catch (DecodeException error) {
            failed = error;
            bytes = new byte[0];
            from = to = 0;
            throw error;
        }
    }

    /** Judges the length when its four bytes are there, and the kind when it is. */
    private Object read() throws DecodeException {
        if (to - from < 4) {
            return null;
        }
        ByteBuffer rest = ByteBuffer.wrap(bytes, from, to - from).order(ByteOrder.LITTLE_ENDIAN);
        long length = rest.getInt() & 0xffff_ffffL;
        if (length < 1 || length > Frames.MAX_REPLY_BYTES) {
            String text = "a frame of " + length + " bytes; it may have from 1 to " + Frames.MAX_REPLY_BYTES;
            throw new DecodeException("length", text);
        }
        if (!rest.hasRemaining()) {
            return null;
        }
        int kind = rest.get() & 0xff;
        if (kind < Reader.WELCOME || kind > Reader.INCLUDED) {
            throw new DecodeException("kind", "there is no frame of kind " + kind + " here");
        }
        int body = (int) length - 1;
        if (rest.remaining() < body) {
            return null;
        }
        ByteBuffer whole = ByteBuffer.wrap(bytes, from + Frames.HEAD_BYTES, body).slice();
        Object reply = Reader.read(kind, whole);
        from += 4 + (int) length;
        if (from == to) {
            from = to = 0;
            if (bytes.length > KEPT_BYTES) {
                bytes = new byte[0];
            }
        }
        return reply;
    }

    /** Whether a frame has begun that is not whole. */
    boolean isWithin() {
        return to > from;
    }
}
