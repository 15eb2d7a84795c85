package rota;

import java.io.IOException;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketOption;
import java.net.StandardSocketOptions;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.BooleanSupplier;
import jdk.net.ExtendedSocketOptions;

/** Connects by TCP. */
final class Dial {
    /**
     * The pause from one attempt to connect to the next, with another address of the host, while the earlier ones go on (RFC 8305
     * has this number), in milliseconds.
     */
    private static final int STAGGER_MS = 250;

    private Dial() {}

    /** Host and port of a text {@code HOST:PORT} or {@code [ADDRESS]:PORT}. */
    static InetSocketAddress parse(String text) throws RotaException.Invalid {
        int colon = text.lastIndexOf(':');
        try {
            String host = text.substring(0, colon);
            if (host.startsWith("[") && host.endsWith("]")) {
                host = host.substring(1, host.length() - 1);
            }
            return InetSocketAddress.createUnresolved(host, Integer.parseInt(text.substring(colon + 1)));
        } catch (IllegalArgumentException | IndexOutOfBoundsException error) {
            throw new RotaException.Invalid("\"" + text + "\" is not HOST:PORT");
        }
    }

    /** Connects to a host; only to addresses of this machine, unless it is insecure. */
    static SocketChannel connect(InetSocketAddress to, boolean insecure, Selector selector, BooleanSupplier dropped)
            throws IOException, RotaException {
        List<InetAddress> found = List.of(InetAddress.getAllByName(to.getHostString()));
        List<InetAddress> here = found.stream().filter(one -> insecure || one.isLoopbackAddress()).toList();
        if (here.isEmpty()) {
            throw new RotaException.Insecure(found.get(0).getHostAddress() + ":" + to.getPort());
        }
        List<InetSocketAddress> addresses = new ArrayList<>();
        for (InetAddress address : inTurns(here)) {
            addresses.add(new InetSocketAddress(address, to.getPort()));
        }
        SocketChannel channel = connectFirst(addresses, selector, dropped);
        prepare(channel);
        return channel;
    }

    /** Addresses of both versions in turns, as the system prefers them. */
    static List<InetAddress> inTurns(List<InetAddress> addresses) {
        boolean four = addresses.get(0) instanceof Inet4Address;
        List<InetAddress> preferred = addresses.stream().filter(one -> one instanceof Inet4Address == four).toList();
        List<InetAddress> others = addresses.stream().filter(one -> one instanceof Inet4Address != four).toList();
        List<InetAddress> turns = new ArrayList<>();
        for (int at = 0; at < Math.max(preferred.size(), others.size()); at++) {
            if (at < preferred.size()) {
                turns.add(preferred.get(at));
            }
            if (at < others.size()) {
                turns.add(others.get(at));
            }
        }
        return turns;
    }

    /**
     * Tries the addresses one behind the other, each soon after the one before, and takes the first that answers: an address
     * without an answer does not hold up the next.
     */
    static SocketChannel connectFirst(List<InetSocketAddress> addresses, Selector selector, BooleanSupplier dropped)
            throws IOException {
        List<SocketChannel> underWay = new ArrayList<>();
        Iterator<InetSocketAddress> rest = addresses.iterator();
        IOException failed = new IOException("the host has no address");
        SocketChannel taken = null;
        long next = System.nanoTime();
        try {
            while (taken == null) {
                if (dropped.getAsBoolean()) {
                    throw new ClosedChannelException();
                }
                if (rest.hasNext() && (underWay.isEmpty() || System.nanoTime() >= next)) {
                    next = System.nanoTime() + STAGGER_MS * 1_000_000L;
                    SocketChannel channel = SocketChannel.open();
                    underWay.add(channel);
                    channel.configureBlocking(false);
                    channel.register(selector, SelectionKey.OP_CONNECT, channel);
                    try {
                        if (channel.connect(rest.next())) {
                            taken = channel;
                        }
                    } catch (IOException error) {
                        failed = error;
                        forget(channel, underWay);
                    }
                } else if (underWay.isEmpty()) {
                    throw failed;
                } else {
                    selector.select(rest.hasNext() ? STAGGER_MS : 0);
                    for (SelectionKey key : selector.selectedKeys()) {
                        SocketChannel channel = (SocketChannel) key.attachment();
                        try {
                            if (taken == null && channel.finishConnect()) {
                                taken = channel;
                            }
                        } catch (IOException error) {
                            failed = error;
                            forget(channel, underWay);
                        }
                    }
                    selector.selectedKeys().clear();
                }
            }
            return taken;
        } finally {
            for (SocketChannel channel : underWay) {
                if (channel != taken) {
                    channel.close();
                }
            }
            // Closed channels leave the selector.
            selector.selectNow();
            selector.selectedKeys().clear();
        }
    }

    private static void forget(SocketChannel channel, List<SocketChannel> underWay) throws IOException {
        underWay.remove(channel);
        channel.close();
    }

    /** It writes at once, since writes are gathered already, and an idle connection is lost half a minute after the daemon's host has vanished. */
    private static void prepare(SocketChannel channel) throws IOException {
        set(channel, StandardSocketOptions.TCP_NODELAY, true);
        set(channel, ExtendedSocketOptions.TCP_KEEPIDLE, 10);
        set(channel, ExtendedSocketOptions.TCP_KEEPINTERVAL, 5);
        set(channel, ExtendedSocketOptions.TCP_KEEPCOUNT, 4);
        set(channel, StandardSocketOptions.SO_KEEPALIVE, true);
    }

    private static <T> void set(SocketChannel channel, SocketOption<T> option, T value) throws IOException {
        if (channel.supportedOptions().contains(option)) {
            channel.setOption(option, value);
        }
    }
}
