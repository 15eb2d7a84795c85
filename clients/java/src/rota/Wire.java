package rota;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import javax.net.ssl.SSLException;

/** The thread of a client: it alone has the socket. */
final class Wire implements Runnable {
    /** How long it goes on reading after a write has failed: what has come already says why. */
    private static final int GRACE_MS = 100;

    private final Client client;
    private final String address;
    private final Options options;
    private final Selector selector;
    private final Inbox inbox = new Inbox();
    private final ByteBuffer buffer = ByteBuffer.allocate(64 << 10);
    private volatile SocketChannel channel;
    private volatile boolean dropped;
    private SelectionKey key;
    private Stream stream;
    private ByteBuffer out = ByteBuffer.allocate(0);
    private IOException writeError;
    private boolean shut;
    /** Where there is no memory to say why: it is made before. */
    private final RotaException.Lost unsaid = RotaException.Lost.failed(new IOException("no memory is left"));

    Wire(Client client, String address, Options options) throws IOException {
        this.client = client;
        this.address = address;
        this.options = options;
        selector = Selector.open();
    }

    /** There is something to do. */
    void wake() {
        selector.wakeup();
    }

    /** Ends the connection at once, and with it the thread. */
    void drop() {
        dropped = true;
        SocketChannel now = channel;
        if (now != null) {
            closeQuietly(now);
        }
        selector.wakeup();
    }

    private static void closeQuietly(AutoCloseable socket) {
        try {
            socket.close();
        } catch (Exception ignored) {
            // It is gone in any case.
        }
    }

    @Override
    public void run() {
        try {
            open();
            enter();
            serve();
        } catch (RotaException error) {
            client.end(error);
        } catch (SSLException error) {
            client.end(client.isIn() ? RotaException.Lost.failed(error) : new RotaException.NoTls(error.getMessage(), error));
        } catch (IOException | RuntimeException | Error error) {
            // Errors too, as that there is no memory for a frame: nobody else tells those that wait.
            boolean isLost = client.isIn() || error instanceof EOFException;
            client.end(isLost ? RotaException.Lost.failed(error) : new RotaException.NoConnection(error));
        } finally {
            // Whatever has ended this thread: it changes nothing where the end has been said.
            client.end(unsaid);
            SocketChannel now = channel;
            if (now != null) {
                closeQuietly(now);
            }
            closeQuietly(selector);
        }
    }

    private void opened(SocketChannel open) throws IOException {
        channel = open;
        if (dropped) {
            throw new ClosedChannelException();
        }
    }

    private void open() throws IOException, RotaException {
        boolean isTls = address.startsWith("tls:");
        if (!isTls && !address.startsWith("tcp:")) {
            opened(SocketChannel.open(StandardProtocolFamily.UNIX));
            channel.connect(UnixDomainSocketAddress.of(address));
            register();
            stream = new Stream.Plain(channel);
            return;
        }
        if (isTls && options.tls == null) {
            throw new RotaException.NoTls("no certificates to trust are given", null);
        }
        InetSocketAddress to = Dial.parse(address.substring(4));
        opened(Dial.connect(to, isTls || options.insecure, selector, () -> dropped));
        register();
        if (isTls) {
            Stream.Secure secure = new Stream.Secure(channel, options.tls.engine(to.getHostString(), to.getPort()));
            stream = secure;
            secure.begin();
            for (Boolean writes = secure.shake(); writes != null; writes = secure.shake()) {
                await(writes ? SelectionKey.OP_WRITE : SelectionKey.OP_READ, 0);
            }
        } else {
            stream = new Stream.Plain(channel);
        }
    }

    private void register() throws IOException {
        channel.configureBlocking(false);
        key = channel.keyFor(selector);
        if (key == null) {
            key = channel.register(selector, 0);
        }
    }

    private void await(int ops, int most) throws IOException {
        if (dropped || !key.isValid()) {
            throw new ClosedChannelException();
        }
        key.interestOps(ops);
        selector.select(most);
        selector.selectedKeys().clear();
    }

    /** Says hello, and reads up to the welcome. */
    private void enter() throws IOException, RotaException {
        ByteBuffer hello = ByteBuffer.wrap(Frames.hello(options.name, options.membership, options.whenSlow));
        while (!stream.write(hello)) {
            await(SelectionKey.OP_WRITE, 0);
        }
        while (true) {
            Object reply = pull();
            if (reply instanceof Reply.Welcome welcome) {
                if (welcome.version() < Frames.LOWEST_VERSION || welcome.version() > Frames.HIGHEST_VERSION) {
                    throw new RotaException.Version(welcome.version());
                }
                if (welcome.memory() != 0) {
                    // It was not asked for.
                    throw RotaException.Lost.unexpected();
                }
                client.enter(welcome);
                return;
            } else if (reply instanceof Reply.Refused refused) {
                throw new RotaException.Refused(refused.code(), refused.text());
            } else if (reply instanceof Reply.Goodbye goodbye) {
                throw new RotaException.Refused(goodbye.code(), goodbye.text());
            } else if (reply != null) {
                throw RotaException.Lost.unexpected();
            }
            if (!read()) {
                await(SelectionKey.OP_READ, 0);
            }
        }
    }

    private Object pull() throws RotaException.Lost {
        try {
            return inbox.pull();
        } catch (DecodeException error) {
            throw RotaException.Lost.protocol(error);
        }
    }

    /** Reads once; whether there was anything. */
    private boolean read() throws IOException, RotaException.Lost {
        buffer.clear();
        int count = stream.read(buffer);
        if (count < 0) {
            throw inbox.isWithin() ? RotaException.Lost.failed(new EOFException("the stream was cut")) : RotaException.Lost.ended();
        }
        inbox.feed(buffer.flip());
        return count > 0;
    }

    private void serve() throws IOException, RotaException {
        client.settle(inbox);
        while (!client.isOver()) {
            write();
            boolean reads = client.mayRead();
            boolean failed = writeError != null;
            boolean writes = !failed && (out.hasRemaining() || stream.wantsWrite());
            int ops = (reads ? SelectionKey.OP_READ : 0) | (writes ? SelectionKey.OP_WRITE : 0);
            if (dropped || !key.isValid()) {
                return;
            }
            key.interestOps(ops);
            if (reads && stream.hasMore()) {
                selector.selectNow();
            } else {
                selector.select(failed && reads ? GRACE_MS : 0);
            }
            selector.selectedKeys().clear();
            if (!reads || client.isOver()) {
                continue;
            }
            if (read()) {
                client.settle(inbox);
            } else if (failed) {
                throw RotaException.Lost.failed(writeError);
            }
        }
    }

    /** Writes what the socket takes. */
    private void write() {
        if (writeError != null) {
            return;
        }
        try {
            while (stream.write(out)) {
                ByteBuffer next = client.take();
                if (next == Client.END && !shut) {
                    shut = stream.shutdown();
                }
                if (next == null || next == Client.END) {
                    return;
                }
                out = next;
            }
        } catch (IOException error) {
            writeError = error;
            client.writeFailed(error);
        }
    }
}
