package rota;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A client that connects again when its connection is lost, joins its groups again, and says so: {@link Event.Reconnected} stands
 * where something may be missing.
 *
 * <p>It connects again while a call of {@link #receive} waits for events, and nowhere else, so that nothing is sent or received
 * behind a gap that the application has not seen. When {@link #send} says that the connection is lost, take events until {@code
 * Reconnected}. A daemon may take a while to notice that the old connection is gone; a client with a name of its own is refused as
 * long.
 */
public final class Reconnecting implements AutoCloseable {
    /** The most bytes of events that may come while groups are joined again, unless {@link Options#unreadBytes} is more. */
    static long earlyBytes = 1L << 30;

    private final String address;
    private final Options options;
    private final Backoff backoff;
    /** Taken by who receives. */
    private final ReentrantLock turn = new ReentrantLock(true);
    /** Of the fields below. */
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition closed = lock.newCondition();
    private final TreeSet<String> groups = new TreeSet<>();
    /** Null while there is no connection: then there is a loss. */
    private Client client;
    private Loss loss;
    private boolean closing;

    private static final class Loss {
        final RotaException.Lost lost;
        final long since = System.nanoTime();
        final long unsettled;
        int attempts;
        long next;

        Loss(RotaException.Lost lost, long unsettled) {
            this.lost = lost;
            this.unsettled = unsettled;
        }
    }

    private Reconnecting(String address, Options options, Backoff backoff, Client client) {
        this.address = address;
        this.options = options;
        this.backoff = backoff;
        this.client = client;
    }

    /** Connects for the first time; a failure of this attempt is final. */
    public static Reconnecting connect(String address, Options options, Backoff backoff)
            throws RotaException, InterruptedException {
        Options own = options.copy();
        return new Reconnecting(address, own, backoff, own.connect(address));
    }

    /**
     * The connection, null while there is none: to list groups, for instance. Joins and leaves made there are not made again.
     */
    public Client client() {
        lock.lock();
        try {
            return client;
        } finally {
            lock.unlock();
        }
    }

    private Client connected() throws RotaException.Lost {
        lock.lock();
        try {
            if (client == null) {
                throw loss.lost.copy();
            }
            return client;
        } finally {
            lock.unlock();
        }
    }

    private void note(String group, boolean joined) {
        lock.lock();
        try {
            if (joined) {
                groups.add(group);
            } else {
                groups.remove(group);
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * As {@link Client#join}; and again on each new connection, also if this one is lost meanwhile or the answer does not come in
     * time. Only a group that the daemon refuses is not joined again.
     */
    public void join(String group) throws RotaException, InterruptedException {
        Names.check(group, Names.wrongGroup(group));
        Client now = connected();
        // On the list before the answer: a connection that is lost meanwhile is followed by one that joins.
        note(group, true);
        try {
            now.join(group);
        } catch (RotaException.Failed would) {
            note(group, false);
            throw would;
        }
    }

    /** As {@link Client#leave}; no new connection joins the group again. */
    public void leave(String group) throws RotaException, InterruptedException {
        note(group, false);
        connected().leave(group);
    }

    /** As {@link Client#send}. */
    public void send(String to, byte[] payload) throws RotaException, InterruptedException {
        connected().send(to, payload);
    }

    /** As {@link Client#send}. */
    public void send(Envelope envelope, byte[] payload) throws RotaException, InterruptedException {
        connected().send(envelope, payload);
    }

    /** As {@link Client#trySend}. */
    public void trySend(Envelope envelope, byte[] payload) throws RotaException {
        connected().trySend(envelope, payload);
    }

    /**
     * The next event; waits until there is one. An exception means that somebody has to change something before an attempt can
     * succeed ({@link RotaException#mayPass}), as a certificate that has expired; or that this client was closed. Each further call
     * tries once more: so a program may call again, after a pause of its own, and goes on once that has been done.
     */
    public Event receive() throws RotaException, InterruptedException {
        while (true) {
            Event event = receive(Duration.ofDays(1));
            if (event != null) {
                return event;
            }
        }
    }

    /** The next event, null if there is none within so long. An attempt to connect that has begun may take longer. */
    public Event receive(Duration timeout) throws RotaException, InterruptedException {
        long left = Options.nanos(timeout);
        long deadline = System.nanoTime() + left;
        if (!turn.tryLock(left, TimeUnit.NANOSECONDS)) {
            return null;
        }
        try {
            while (true) {
                Client now = client();
                if (now == null) {
                    if (!pause(deadline)) {
                        return null;
                    }
                    Event gap = attempt();
                    if (gap != null) {
                        return gap;
                    }
                    continue;
                }
                try {
                    return now.receive(Duration.ofNanos(Math.max(0, deadline - System.nanoTime())));
                } catch (RotaException.Lost lost) {
                    now.hangUp();
                    lose(now, lost);
                }
            }
        } finally {
            turn.unlock();
        }
    }

    private void lose(Client now, RotaException.Lost lost) throws RotaException.Lost {
        lock.lock();
        try {
            if (closing) {
                throw RotaException.Lost.ended();
            }
            client = null;
            loss = new Loss(lost, now.unsettledBytes());
            // A pause comes before the first attempt too: a daemon may let a client in and lose it at once, over and over.
            loss.next = System.nanoTime() + backoff.pause(0, ThreadLocalRandom.current().nextDouble());
        } finally {
            lock.unlock();
        }
    }

    /** Waits until the next attempt is due; whether that is before the deadline. */
    private boolean pause(long deadline) throws RotaException.Lost, InterruptedException {
        lock.lock();
        try {
            while (true) {
                if (closing) {
                    throw RotaException.Lost.ended();
                }
                long now = System.nanoTime();
                if (now - loss.next >= 0) {
                    return true;
                }
                if (now - deadline >= 0) {
                    return false;
                }
                closed.awaitNanos(Math.min(loss.next - now, deadline - now));
            }
        } finally {
            lock.unlock();
        }
    }

    /** Connects and joins once more; null if that has failed and may pass. */
    private Event attempt() throws RotaException, InterruptedException {
        Client next = null;
        try {
            next = options.connect(address);
            return rejoin(next);
        } catch (RotaException error) {
            if (next != null) {
                next.hangUp();
            }
            lock.lock();
            try {
                if (closing) {
                    throw RotaException.Lost.ended();
                }
                if (!error.mayPass()) {
                    throw error;
                }
                loss.attempts++;
                loss.next = System.nanoTime() + backoff.pause(loss.attempts, ThreadLocalRandom.current().nextDouble());
            } finally {
                lock.unlock();
            }
            return null;
        } catch (InterruptedException | RuntimeException | Error end) {
            if (next != null) {
                next.hangUp();
            }
            throw end;
        }
    }

    private Event rejoin(Client next) throws RotaException, InterruptedException {
        // Events wait until the gap is known, since the application takes none before: very many, but not without end.
        next.unreadLimit(Math.max(earlyBytes, options.unreadBytes));
        List<String> names;
        lock.lock();
        try {
            names = List.copyOf(groups);
        } finally {
            lock.unlock();
        }
        Map<String, RotaException.Failed> notJoined = new TreeMap<>();
        TreeSet<String> joined = new TreeSet<>();
        for (String name : names) {
            try {
                next.join(name);
                joined.add(name);
            } catch (RotaException.Failed would) {
                notJoined.put(name, would);
            } catch (RotaException.TimedOut | RotaException.Unread late) {
                // The join may still take effect, unheard: only another connection makes it certain.
                throw RotaException.Lost.failed(late);
            }
        }
        while (true) {
            TreeSet<String> left = new TreeSet<>(joined);
            Event gap = goOn(next, left, notJoined);
            if (gap != null) {
                return gap;
            }
            for (String name : left) {
                try {
                    next.leave(name);
                } catch (RotaException.Failed | RotaException.TimedOut | RotaException.Unread would) {
                    // Another connection will not join it.
                    throw RotaException.Lost.failed(would);
                }
                joined.remove(name);
            }
        }
    }

    /**
     * Takes the new connection into use. Not while it is in groups that the application has left meanwhile: then the result is
     * null, and only those stay in {@code joined}.
     */
    private Event goOn(Client next, TreeSet<String> joined, Map<String, RotaException.Failed> notJoined)
            throws RotaException.Lost {
        lock.lock();
        try {
            if (closing) {
                throw RotaException.Lost.ended();
            }
            joined.removeAll(groups);
            if (!joined.isEmpty()) {
                return null;
            }
            next.unreadLimit(options.unreadBytes);
            groups.removeAll(notJoined.keySet());
            client = next;
            Duration duration = Duration.ofNanos(System.nanoTime() - loss.since);
            return new Event.Reconnected(loss.lost, duration, loss.unsettled, next.name(), notJoined);
        } finally {
            lock.unlock();
        }
    }

    /** As {@link Client#close}; while there is no connection it only ends the attempts. */
    @Override
    public void close() throws RotaException {
        Client now;
        lock.lock();
        try {
            closing = true;
            closed.signalAll();
            now = client;
        } finally {
            lock.unlock();
        }
        if (now != null) {
            now.close();
        }
    }
}
