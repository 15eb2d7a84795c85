package rota;

import java.io.EOFException;
import java.io.IOException;
import java.net.SocketException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Where a scripted daemon listens. */
final class House implements AutoCloseable {
    final Path path;
    private final Path folder;
    ServerSocketChannel listener;

    House() throws IOException {
        folder = Files.createTempDirectory("rota");
        path = folder.resolve("s");
        open();
    }

    void open() throws IOException {
        Files.deleteIfExists(path);
        listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        listener.bind(UnixDomainSocketAddress.of(path));
    }

    @Override
    public void close() throws IOException {
        listener.close();
        Files.deleteIfExists(path);
        Files.deleteIfExists(folder);
    }

    /** What a scripted daemon does with its clients. */
    interface Script<T> {
        T play() throws Exception;
    }

    /** Runs a script in a thread of its own. */
    <T> Played<T> play(Script<T> script) {
        CompletableFuture<T> end = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                end.complete(script.play());
            } catch (Throwable failed) {
                end.completeExceptionally(failed);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return new Played<>(end);
    }

    record Played<T>(CompletableFuture<T> end) {
        /** Waits for the end of the script: its failure is the test's. */
        T await() throws Exception {
            try {
                return end.get(Tests.PATIENCE.toSeconds(), TimeUnit.SECONDS);
            } catch (TimeoutException | ExecutionException error) {
                throw new AssertionError("the script: " + error, error);
            }
        }
    }

    /** One client, seen from the daemon. */
    record Peer(SocketChannel channel) implements AutoCloseable {
        record Frame(int kind, byte[] body) {}

        /** Reads so many bytes; fewer at the end. */
        byte[] read(int count) throws IOException {
            ByteBuffer buffer = ByteBuffer.allocate(count);
            try {
                while (buffer.hasRemaining() && channel.read(buffer) >= 0) {
                    continue;
                }
            } catch (SocketException reset) {
                // A client that hangs up while it has something unread ends this way, behind all that it has sent.
            }
            byte[] read = new byte[buffer.position()];
            buffer.flip().get(read);
            return read;
        }

        /** The next frame; kind 0 is the end. */
        Frame frame() throws IOException {
            byte[] length = read(4);
            if (length.length < 4) {
                return new Frame(0, length);
            }
            byte[] all = read(ByteBuffer.wrap(length).order(ByteOrder.LITTLE_ENDIAN).getInt());
            if (all.length == 0) {
                throw new EOFException();
            }
            byte[] body = new byte[all.length - 1];
            System.arraycopy(all, 1, body, 0, body.length);
            return new Frame(all[0], body);
        }

        byte[] expect(int kind) throws IOException {
            Frame frame = frame();
            Tests.equal(frame.kind, kind);
            return frame.body;
        }

        void tell(byte[]... frames) throws IOException {
            for (byte[] frame : frames) {
                ByteBuffer all = ByteBuffer.wrap(frame);
                while (all.hasRemaining()) {
                    channel.write(all);
                }
            }
        }

        /** Lets the client in with this credit. */
        void welcome(int credit) throws IOException {
            welcome(credit, 5000);
        }

        void welcome(int credit, int largest) throws IOException {
            expect(1);
            byte[] name = Names.bytes("#alice#n1");
            ByteBuffer body = body(2 + 1 + name.length + 8);
            body.putShort((short) 3).put((byte) name.length).put(name).putInt(credit).putInt(largest);
            tell(framed(0x81, body));
        }

        /** Answers a join of this group. */
        void join(String group) throws IOException {
            tell(done(request(Frames.JOIN, group)));
        }

        /** Answers a leave of this group. */
        void leave(String group) throws IOException {
            tell(done(request(Frames.LEAVE, group)));
        }

        /** The body of a request that names this group. */
        byte[] request(int kind, String group) throws IOException {
            byte[] body = expect(kind);
            Tests.equal(new String(body, 5, body.length - 5, StandardCharsets.US_ASCII), group);
            return body;
        }

        void untilGone() throws IOException {
            try {
                while (frame().kind != 0) {
                    continue;
                }
            } catch (IOException gone) {
                // So it has.
                return;
            }
        }

        @Override
        public void close() throws IOException {
            channel.close();
        }
    }

    Peer accept() throws IOException {
        return new Peer(listener.accept());
    }

    static ByteBuffer body(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    static byte[] framed(int kind, ByteBuffer body) {
        ByteBuffer frame = body(5 + body.position());
        frame.putInt(1 + body.position()).put((byte) kind).put(body.flip());
        return frame.array();
    }

    /** The answer to a request with this body. */
    static byte[] done(byte[] request) {
        return framed(0x83, body(4).put(request, 0, 4));
    }

    static byte[] message(String payload) {
        byte[] text = payload.getBytes(StandardCharsets.UTF_8);
        ByteBuffer body = body(1 + 7 + 5 + 7 + text.length);
        body.put((byte) 7).put(Names.bytes("#bob#n2")).put((byte) 4).put(new byte[] {0, 0, 0, 1});
        body.put((byte) 6).put(Names.bytes("orders")).put(text);
        return framed(0x85, body);
    }

    static byte[] credit(int bytes) {
        return framed(0x89, body(4).putInt(bytes));
    }

    /** A refusal, or the failure of a request with this body. */
    static byte[] reason(int kind, byte[] request, Code code) {
        ByteBuffer body = body(4 + 2 + 3);
        if (request != null) {
            body.put(request, 0, 4);
        }
        body.putShort((short) code.number()).put((byte) 2).put(Names.bytes("no"));
        return framed(kind, body);
    }
}
