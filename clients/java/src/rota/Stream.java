package rota;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;

/** A connected socket, with TLS or without. None of its methods waits. */
interface Stream {
    /** Reads what is there: 0 if nothing is, -1 at an orderly end. */
    int read(ByteBuffer to) throws IOException;

    /** Writes what the socket takes; whether that was all. */
    boolean write(ByteBuffer from) throws IOException;

    /** Says that nothing more follows; whether that is on its way. */
    boolean shutdown() throws IOException;

    /** Whether there is something to write that was handed over already. */
    boolean wantsWrite();

    /** Whether there may be something to read that no selector tells of. */
    boolean hasMore();

    /** Without TLS. */
    record Plain(SocketChannel channel) implements Stream {
        @Override
        public int read(ByteBuffer to) throws IOException {
            return channel.read(to);
        }

        @Override
        public boolean write(ByteBuffer from) throws IOException {
            while (from.hasRemaining() && channel.write(from) > 0) {
                continue;
            }
            return !from.hasRemaining();
        }

        @Override
        public boolean shutdown() throws IOException {
            channel.shutdownOutput();
            return true;
        }

        @Override
        public boolean wantsWrite() {
            return false;
        }

        @Override
        public boolean hasMore() {
            return false;
        }
    }

    /** With TLS. An end without the other side's close_notify is a cut. */
    final class Secure implements Stream {
        private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);
        private final SocketChannel channel;
        private final SSLEngine engine;
        /** Bytes of the socket that are not decrypted yet, ready to take more. */
        private final ByteBuffer sealed;
        /** Encrypted bytes that the socket has not taken yet, ready to be written. */
        private final ByteBuffer toWrite;
        /** Decrypted bytes, ready to be read. */
        private ByteBuffer opened;
        /** The other side has said that it ends. */
        private boolean ended;
        /** All that has come was read. */
        private boolean starved;
        /** What every read behind all that has come throws. */
        private IOException failed;

        Secure(SocketChannel channel, SSLEngine engine) {
            this.channel = channel;
            this.engine = engine;
            int packet = engine.getSession().getPacketBufferSize();
            sealed = ByteBuffer.allocate(2 * packet);
            toWrite = ByteBuffer.allocate(packet).flip();
            opened = ByteBuffer.allocate(engine.getSession().getApplicationBufferSize()).flip();
        }

        /** Before the first {@link #shake}. */
        void begin() throws IOException {
            engine.beginHandshake();
        }

        /** One step of the handshake: null when it is done, otherwise whether the socket has to take bytes. */
        Boolean shake() throws IOException {
            while (true) {
                if (!flush()) {
                    return true;
                }
                switch (engine.getHandshakeStatus()) {
                    case NEED_TASK -> runTasks();
                    case NEED_WRAP -> wrap(NOTHING);
                    case NEED_UNWRAP, NEED_UNWRAP_AGAIN -> {
                        if (unwrap() == SSLEngineResult.Status.BUFFER_UNDERFLOW && !fill()) {
                            return false;
                        }
                        if (ended) {
                            throw new EOFException("the daemon has ended the handshake");
                        }
                    }
                    default -> {
                        return null;
                    }
                }
            }
        }

        private void runTasks() {
            for (Runnable task = engine.getDelegatedTask(); task != null; task = engine.getDelegatedTask()) {
                task.run();
            }
        }

        /** Reads from the socket; whether there was anything. */
        private boolean fill() throws IOException {
            int count = channel.read(sealed);
            if (count < 0) {
                throw new EOFException("the stream was cut");
            }
            return count > 0;
        }

        private SSLEngineResult.Status unwrap() throws IOException {
            sealed.flip();
            opened.compact();
            SSLEngineResult result;
            try {
                result = engine.unwrap(sealed, opened);
            } finally {
                sealed.compact();
                opened.flip();
            }
            if (result.getStatus() == SSLEngineResult.Status.BUFFER_OVERFLOW) {
                int room = Math.max(2 * opened.capacity(), engine.getSession().getApplicationBufferSize());
                opened = ByteBuffer.allocate(room).put(opened).flip();
            }
            ended |= result.getStatus() == SSLEngineResult.Status.CLOSED;
            if (result.getHandshakeStatus() == HandshakeStatus.NEED_TASK) {
                runTasks();
            }
            return result.getStatus();
        }

        /** All there is that fits, so that nothing stays that no selector tells of. */
        @Override
        public int read(ByteBuffer to) throws IOException {
            int before = to.remaining();
            if (failed != null && !opened.hasRemaining()) {
                throw failed;
            }
            try {
                starved = false;
                while (to.hasRemaining() && !starved && (opened.hasRemaining() || !ended)) {
                    if (opened.hasRemaining()) {
                        int count = Math.min(opened.remaining(), to.remaining());
                        to.put(opened.slice(opened.position(), count));
                        opened.position(opened.position() + count);
                    } else if (unwrap() == SSLEngineResult.Status.BUFFER_UNDERFLOW) {
                        starved = !fill();
                    }
                }
            } catch (IOException error) {
                // What has come whole before that is read first.
                failed = error;
                if (to.remaining() == before) {
                    throw error;
                }
            }
            int count = before - to.remaining();
            return count == 0 && ended ? -1 : count;
        }

        @Override
        public boolean hasMore() {
            return !starved || failed != null || ended;
        }

        private void wrap(ByteBuffer from) throws IOException {
            toWrite.clear();
            engine.wrap(from, toWrite);
            toWrite.flip();
        }

        private boolean flush() throws IOException {
            while (toWrite.hasRemaining() && channel.write(toWrite) > 0) {
                continue;
            }
            return !toWrite.hasRemaining();
        }

        @Override
        public boolean write(ByteBuffer from) throws IOException {
            while (flush()) {
                // The other side may have asked for new keys.
                boolean asked = engine.getHandshakeStatus() == HandshakeStatus.NEED_WRAP;
                if (!from.hasRemaining() && !asked) {
                    return true;
                }
                wrap(from);
                if (!toWrite.hasRemaining() && !asked) {
                    throw new EOFException("TLS takes nothing more");
                }
            }
            return false;
        }

        @Override
        public boolean shutdown() throws IOException {
            engine.closeOutbound();
            while (flush()) {
                if (engine.isOutboundDone()) {
                    return true;
                }
                wrap(NOTHING);
            }
            return false;
        }

        @Override
        public boolean wantsWrite() {
            return toWrite.hasRemaining() || engine.getHandshakeStatus() == HandshakeStatus.NEED_WRAP;
        }
    }
}
