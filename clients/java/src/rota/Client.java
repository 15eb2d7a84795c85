package rota;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A connection to a daemon. Any number of threads may use one.
 *
 * <p>A thread of the client's own reads and writes, messages that come while it writes together. {@link #close} and {@link
 * #hangUp} end it. An interrupt ends the wait of a call and nothing else.
 */
public final class Client implements AutoCloseable {
    /** Room that an empty buffer of bytes to write keeps. */
    private static final int KEPT_BYTES = 128 << 10;
    /** The most bytes of credit, and of one payload, whatever the daemon says: an array has no more than twice this. */
    static final int MOST_BYTES = 1 << 30;
    /** The most that {@link #hangUp} waits for the thread: only a look-up of a name takes longer, and ends by itself. */
    private static final long LEAVE_MS = 2000;

    private static final byte[] NOTHING = {};
    /** Nothing more is to be written. */
    static final ByteBuffer END = ByteBuffer.allocate(0);

    private static final AtomicLong THREADS = new AtomicLong();

    private final Options options;
    private final Wire wire;
    private final Thread thread;
    /** Taken by who waits for credit: first come, first served. */
    private final ReentrantLock turn = new ReentrantLock(true);

    private final ReentrantLock lock = new ReentrantLock();
    /** There is news for who waits for credit, answers, or for all to be written. */
    private final Condition changed = lock.newCondition();
    /** There are events, or the connection has ended. */
    private final Condition arrived = lock.newCondition();

    private Reply.Welcome welcome;
    /** Why there is no connection. */
    private RotaException refused;
    private byte[] out = {};
    private int outBytes;
    /** What the thread writes; it becomes the next buffer. */
    private byte[] inFlight = {};
    private boolean writing;
    private long outstanding;
    private final Map<Integer, Object> answers = new HashMap<>();
    private int newest;
    private final ArrayDeque<Event> events = new ArrayDeque<>();
    private long unread;
    private long unreadLimit;
    private long taken;
    private RotaException.Lost lost;
    private IOException writeError;
    /** This side has said bye, or has hung up. */
    private boolean closing;
    /** This side has ended a connection that stood. */
    private boolean hungUp;

    private Client(String address, Options options) throws RotaException {
        this.options = options;
        unreadLimit = options.unreadBytes;
        if (!options.name.isEmpty()) {
            Names.check(options.name, Names.wrong(options.name, Names.MOST_CLIENT));
        }
        try {
            wire = new Wire(this, address, options);
        } catch (IOException error) {
            throw new RotaException.NoConnection(error);
        }
        thread = new Thread(wire, "rota-client-" + THREADS.incrementAndGet());
        thread.setDaemon(true);
    }

    static Client connect(String address, Options options) throws RotaException, InterruptedException {
        Client client = new Client(address, options);
        client.thread.start();
        RotaException why = client.awaitWelcome();
        if (why != null) {
            client.hangUp();
            throw why;
        }
        return client;
    }

    /** Waits until the daemon has let the client in; otherwise says why it has not. */
    private RotaException awaitWelcome() throws InterruptedException {
        boolean interrupted = true;
        lock.lock();
        try {
            long left = Options.nanos(options.timeout);
            while (welcome == null && refused == null && left > 0) {
                left = changed.awaitNanos(left);
            }
            interrupted = false;
            if (welcome != null) {
                return null;
            }
            return refused == null ? new RotaException.TimedOut() : refused;
        } finally {
            lock.unlock();
            if (interrupted) {
                hangUp();
            }
        }
    }

    /** The private name of this client: {@code #client#daemon}. Messages to it come to this client alone. */
    public String name() {
        return welcome.name();
    }

    /** The most bytes of one payload. */
    public int largestPayload() {
        return (int) Math.min(welcome.largestPayload(), MOST_BYTES);
    }

    /** The most bytes of messages that may be outstanding. */
    int credit() {
        return (int) Math.min(welcome.credit(), MOST_BYTES);
    }

    // What the thread calls.

    boolean isIn() {
        lock.lock();
        try {
            return welcome != null;
        } finally {
            lock.unlock();
        }
    }

    void enter(Reply.Welcome entered) {
        lock.lock();
        try {
            welcome = entered;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    boolean isOver() {
        lock.lock();
        try {
            return lost != null;
        } finally {
            lock.unlock();
        }
    }

    boolean mayRead() {
        lock.lock();
        try {
            return unread <= unreadLimit || closing;
        } finally {
            lock.unlock();
        }
    }

    /** What is to be written next; null if there is nothing, and {@link #END} behind a bye. */
    ByteBuffer take() {
        lock.lock();
        try {
            if (writing) {
                writing = false;
                changed.signalAll();
            }
            if (outBytes == 0) {
                // The bye came with closing: it was taken before this.
                return closing ? END : null;
            }
            ByteBuffer next = ByteBuffer.wrap(out, 0, outBytes);
            byte[] free = inFlight.length <= KEPT_BYTES ? inFlight : NOTHING;
            inFlight = out;
            out = free;
            outBytes = 0;
            writing = true;
            return next;
        } finally {
            lock.unlock();
        }
    }

    void writeFailed(IOException error) {
        lock.lock();
        try {
            writeError = error;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** The connection has ended, or there is none. */
    void end(RotaException why) {
        lock.lock();
        try {
            if (welcome == null) {
                refused = refused == null ? why : refused;
            }
            lose(why instanceof RotaException.Lost known ? known : RotaException.Lost.failed(why));
        } finally {
            lock.unlock();
        }
    }

    private void lose(RotaException.Lost why) {
        if (lost == null) {
            lost = why;
            changed.signalAll();
            arrived.signalAll();
        }
    }

    /** Takes all whole frames. */
    void settle(Inbox inbox) {
        lock.lock();
        try {
            boolean news = false;
            while (lost == null) {
                Object reply = inbox.pull();
                if (reply == null) {
                    break;
                }
                news |= !(reply instanceof Event);
                settle(reply);
            }
            if (news || unread > unreadLimit) {
                changed.signalAll();
            }
            if (!events.isEmpty()) {
                arrived.signalAll();
            }
        } catch (DecodeException error) {
            lose(RotaException.Lost.protocol(error));
        } finally {
            lock.unlock();
        }
    }

    private void settle(Object reply) {
        if (reply instanceof Event event) {
            if (!closing) {
                events.add(event);
                unread += cost(event);
            }
        } else if (reply instanceof Reply.Credit credit) {
            outstanding = Math.max(0, outstanding - credit.bytes());
        } else if (reply instanceof Reply.Done done) {
            answers.computeIfPresent(done.request(), (request, none) -> done);
        } else if (reply instanceof Reply.Failed failed) {
            answers.computeIfPresent(failed.request(), (request, none) -> failed);
        } else if (reply instanceof Reply.Groups groups) {
            answers.computeIfPresent(groups.request(), (request, none) -> groups);
        } else if (reply instanceof Reply.Members members) {
            answers.computeIfPresent(members.request(), (request, none) -> members);
        } else if (reply instanceof Reply.Goodbye goodbye) {
            lose(RotaException.Lost.goodbye(goodbye.code(), goodbye.text()));
        } else {
            lose(RotaException.Lost.unexpected());
        }
    }

    /** About how many bytes of memory an event takes. */
    private static long cost(Event event) {
        long content = 0;
        if (event instanceof Event.Message message) {
            content = message.payload().length + 34L * message.to().size();
        } else if (event instanceof Event.View view) {
            content = 40L * view.members().size();
        } else if (event instanceof Event.Skipped skipped) {
            content = 32L * skipped.groups().size();
        }
        return 128 + content;
    }

    // What applications call.

    private void standing() throws RotaException.Lost {
        if (lost != null) {
            throw lost.copy();
        }
        if (closing) {
            throw RotaException.Lost.ended();
        }
        if (writeError != null) {
            throw RotaException.Lost.failed(writeError);
        }
    }

    /**
     * Waits until something has changed that a call may wait for, so many nanoseconds at most; what is left of them. While more
     * is unread than may be, nothing is read: then it waits until somebody takes events, and gives up after a while.
     */
    private long progress(long left) throws RotaException.Unread, InterruptedException {
        if (unread <= unreadLimit) {
            return changed.awaitNanos(left);
        }
        long before = taken;
        long patience = changed.awaitNanos(Options.nanos(options.timeout));
        if (patience <= 0 && taken == before) {
            throw new RotaException.Unread();
        }
        return left;
    }

    private void append(byte[] head, byte[] payload) {
        int bytes = head.length + payload.length;
        if (out.length - outBytes < bytes) {
            out = Arrays.copyOf(out, (int) Math.max((long) outBytes + bytes, Math.min(2L * out.length, Integer.MAX_VALUE - 8)));
        }
        System.arraycopy(head, 0, out, outBytes, head.length);
        System.arraycopy(payload, 0, out, outBytes + head.length, payload.length);
        outBytes += bytes;
        wire.wake();
    }

    private Object ask(int kind, String group) throws RotaException, InterruptedException {
        lock.lockInterruptibly();
        try {
            standing();
            int request = ++newest;
            answers.put(request, Boolean.FALSE);
            try {
                append(Frames.request(kind, request, group), NOTHING);
                long left = Options.nanos(options.timeout);
                while (true) {
                    Object answer = answers.get(request);
                    if (answer instanceof Reply.Failed failed) {
                        throw new RotaException.Failed(failed.code(), failed.text());
                    }
                    if (answer != Boolean.FALSE) {
                        return answer;
                    }
                    standing();
                    if (left <= 0) {
                        throw new RotaException.TimedOut();
                    }
                    left = progress(left);
                }
            } finally {
                // An answer that comes too late has no entry.
                answers.remove(request);
            }
        } finally {
            lock.unlock();
        }
    }

    private void askDone(int kind, String group) throws RotaException, InterruptedException {
        Names.check(group, Names.wrongGroup(group));
        if (!(ask(kind, group) instanceof Reply.Done)) {
            throw RotaException.Lost.unexpected();
        }
    }

    /**
     * Joins a group, and waits until that has taken effect in the order. With membership, the view is among the events. A group
     * that the client is in already is fine.
     */
    public void join(String group) throws RotaException, InterruptedException {
        askDone(Frames.JOIN, group);
    }

    /**
     * Leaves a group, and waits until that has taken effect in the order: messages of the group that were ordered before are
     * still among the events. A group that the client is not in is fine.
     */
    public void leave(String group) throws RotaException, InterruptedException {
        askDone(Frames.LEAVE, group);
    }

    /** All groups that the daemon knows of. */
    public List<GroupSize> groups() throws RotaException, InterruptedException {
        if (ask(Frames.LIST, "") instanceof Reply.Groups groups) {
            return groups.groups();
        }
        throw RotaException.Lost.unexpected();
    }

    /**
     * The private names of the members of a group as far as the daemon knows, in the order of views; none if there is no such
     * group. The client need not be in it.
     */
    public List<String> members(String group) throws RotaException, InterruptedException {
        Names.check(group, Names.wrongGroup(group));
        if (ask(Frames.LIST, group) instanceof Reply.Members members) {
            return members.members();
        }
        throw RotaException.Lost.unexpected();
    }

    /**
     * Sends a message to a group or a client ({@code "orders"}, {@code "#alice#n1"}). Waits while there is no credit: until the
     * daemon has taken enough of the client's earlier messages. Only the client's own copy of a message shows that the message
     * has its place in the order. The client does not have to be in the group. The payload may be used again when the call has
     * returned. A message whose call throws was not sent.
     */
    public void send(String to, byte[] payload) throws RotaException, InterruptedException {
        send(Envelope.to(to), payload);
    }

    /** The same for all that an envelope can say. */
    public void send(Envelope envelope, byte[] payload) throws RotaException, InterruptedException {
        byte[] head = head(envelope, payload);
        turn.lockInterruptibly();
        try {
            lock.lockInterruptibly();
            try {
                while (!put(head, payload)) {
                    progress(Long.MAX_VALUE);
                }
            } finally {
                lock.unlock();
            }
        } finally {
            turn.unlock();
        }
    }

    /** As {@link #send}, but does not wait: {@link RotaException.WouldBlock} if there is no credit now, or others wait for it. */
    public void trySend(Envelope envelope, byte[] payload) throws RotaException {
        byte[] head = head(envelope, payload);
        if (!turn.tryLock()) {
            throw new RotaException.WouldBlock();
        }
        try {
            lock.lock();
            try {
                if (!put(head, payload)) {
                    throw new RotaException.WouldBlock();
                }
            } finally {
                lock.unlock();
            }
        } finally {
            turn.unlock();
        }
    }

    private byte[] head(Envelope envelope, byte[] payload) throws RotaException {
        if (payload.length > largestPayload()) {
            throw new RotaException.TooLarge(largestPayload());
        }
        return Frames.sendHead(envelope, options.service, payload.length);
    }

    /** Takes a frame if there is credit for it. One larger than the credit may go when nothing is outstanding. */
    private boolean put(byte[] head, byte[] payload) throws RotaException.Lost {
        standing();
        long bytes = (long) head.length + payload.length;
        if (outstanding > 0 && outstanding + bytes > credit()) {
            return false;
        }
        // A daemon may give credit back without having read anything.
        if (outBytes > 0 && outBytes + bytes > credit()) {
            return false;
        }
        outstanding += bytes;
        append(head, payload);
        return true;
    }

    /** Waits until all that was sent has been given to the socket. */
    public void flush() throws RotaException, InterruptedException {
        lock.lockInterruptibly();
        try {
            while (outBytes > 0 || writing) {
                standing();
                changed.await();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Bytes of messages, with their frames, that the daemon has not said to have taken. */
    public long unsettledBytes() {
        lock.lock();
        try {
            return outstanding;
        } finally {
            lock.unlock();
        }
    }

    /** How many bytes of events may lie unread from now on. */
    void unreadLimit(long bytes) {
        lock.lock();
        try {
            unreadLimit = bytes;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
        wire.wake();
    }

    /**
     * The next event; waits until there is one. When the connection is lost, the events that arrived before come first; then all
     * calls throw {@link RotaException.Lost}.
     */
    public Event receive() throws RotaException.Lost, InterruptedException {
        return receive(Long.MAX_VALUE);
    }

    /** The next event, null if there is none within so long. */
    public Event receive(Duration timeout) throws RotaException.Lost, InterruptedException {
        return receive(Options.nanos(timeout));
    }

    /** The next event, null if there is none now. */
    public Event tryReceive() throws RotaException.Lost {
        lock.lock();
        try {
            Event event = next();
            if (event == null && lost != null) {
                throw lost.copy();
            }
            return event;
        } finally {
            lock.unlock();
        }
    }

    private Event receive(long left) throws RotaException.Lost, InterruptedException {
        lock.lockInterruptibly();
        try {
            while (true) {
                Event event = next();
                if (event != null) {
                    return event;
                }
                if (lost != null) {
                    throw lost.copy();
                }
                if (left <= 0) {
                    return null;
                }
                left = arrived.awaitNanos(left);
            }
        } finally {
            lock.unlock();
        }
    }

    private Event next() {
        Event event = events.poll();
        if (event != null) {
            boolean wasFull = unread > unreadLimit;
            unread -= cost(event);
            taken++;
            if (wasFull) {
                changed.signalAll();
                wire.wake();
            }
        }
        return event;
    }

    /**
     * Says bye behind all that was sent, and waits until the daemon has read it, {@link Options#timeout} at most: after an
     * exception the daemon may not have read everything. Events that were not taken are dropped. Closing again is fine. An
     * interrupt hangs up.
     *
     * <p>A program that sends and ends should close: what the daemon has not read of a client that just ends may be lost.
     */
    @Override
    public void close() throws RotaException {
        lock.lock();
        try {
            if (closing) {
                return;
            }
        } finally {
            lock.unlock();
        }
        RotaException.Lost why;
        try {
            why = sayBye();
        } finally {
            hangUp();
        }
        if (why != null) {
            throw why.copy();
        }
    }

    /** Says bye, and waits for the end; why the daemon may not have read everything, or null if it has. */
    private RotaException.Lost sayBye() throws RotaException.Lost {
        lock.lock();
        try {
            standing();
            append(Frames.bye(), NOTHING);
            closing = true;
            events.clear();
            unread = 0;
            changed.signalAll();
            long left = Options.nanos(options.timeout);
            while (lost == null && left > 0) {
                left = arrived.awaitNanos(left);
            }
            if (lost == null) {
                return RotaException.Lost.failed(new IOException("the daemon has not read everything in time"));
            }
            boolean isWhole = lost.loss() == RotaException.Lost.Loss.ENDED && writeError == null && !hungUp;
            return isWhole ? null : lost;
        } catch (InterruptedException interrupt) {
            Thread.currentThread().interrupt();
            return RotaException.Lost.failed(interrupt);
        } finally {
            lock.unlock();
        }
    }

    /** Ends the connection at once: what the daemon has not read by then may be lost. */
    public void hangUp() {
        lock.lock();
        try {
            closing = true;
            hungUp |= lost == null;
            lose(RotaException.Lost.ended());
        } finally {
            lock.unlock();
        }
        wire.drop();
        if (Thread.currentThread() == thread) {
            return;
        }
        boolean interrupted = Thread.interrupted();
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LEAVE_MS);
        while (thread.isAlive() && System.nanoTime() < until) {
            try {
                thread.join(LEAVE_MS);
            } catch (InterruptedException again) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
