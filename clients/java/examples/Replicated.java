import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import rota.Backoff;
import rota.Envelope;
import rota.Event;
import rota.Options;
import rota.Reconnecting;
import rota.RotaException;
import rota.Service;

/**
 * A state machine that the members of a group have in common: what {@link Matching} is made of. It is another copy of what
 * `replicated` of the examples of crates/client is, which says how it works; copies in all languages meet.
 */
final class Replicated {
    private static final int COMMAND = 1;
    private static final int OFFER = 2;
    private static final int STATE = 3;
    /** How long a step waits for an event. */
    private static final Duration TURN = Duration.ofMillis(10);

    /** What the copies have in common. */
    interface Machine {
        /** Does a command of this member, the same at each copy; the answer. */
        String apply(String sender, String command);

        /** The whole state, as text. */
        String write();

        /** The opposite. */
        void read(String text);
    }

    private record Offer(long epoch, long count, String digest) {}

    private record Command(long number, String text) {}

    private record Early(String sender, String text) {}

    private final Reconnecting client;
    private String me;
    private final String group;
    private final int majority;
    private final State state;
    private final String session;
    private long newest;
    /** Own commands that are not known to count. */
    private final ArrayDeque<Command> pending = new ArrayDeque<>();
    private Event.View view;
    /** No signal has said that the view ends. */
    private boolean regular;
    /** The members of the view have agreed on a state. */
    private boolean agreed;
    private final Map<String, Offer> offers = new HashMap<>();
    /** Commands behind the view, until there is a state for them. */
    private List<Early> early = new ArrayList<>();
    private final Journal journal;

    /** Connects, with what the journal has. */
    private Replicated(Machine machine, String[] arguments) throws Exception {
        if (arguments.length != 5) {
            throw new IllegalArgumentException("usage: ADDRESS NAME GROUP COPIES JOURNAL");
        }
        Options options = new Options().name(arguments[1]).membership(true);
        client = connect(arguments[0], options);
        me = client.client().name();
        group = arguments[2];
        majority = Integer.parseInt(arguments[3]) / 2 + 1;
        state = new State(machine);
        session = me + "/" + Long.toHexString(System.nanoTime()) + "." + ProcessHandle.current().pid();
        journal = new Journal(Path.of(arguments[4]));
        Journal.Found found = journal.read();
        if (found != null) {
            state.read(found.state());
            for (String line : found.commands()) {
                int space = line.indexOf(' ');
                state.apply(line.substring(0, space), line.substring(space + 1));
            }
            System.out.println("replayed " + state.count);
        }
        client.join(group);
    }

    /** A daemon may take a while to notice that an earlier copy of the same name has gone. */
    private static Reconnecting connect(String address, Options options) throws RotaException, InterruptedException {
        for (int attempts = 0; attempts < 100; attempts++) {
            try {
                return Reconnecting.connect(address, options, Backoff.DEFAULT);
            } catch (RotaException.Refused refused) {
                Thread.sleep(50);
            }
        }
        return Reconnecting.connect(address, options, Backoff.DEFAULT);
    }

    /** Gives a command; its answer comes when it counts. */
    private void command(String text) throws RotaException, InterruptedException {
        Command given = new Command(++newest, text);
        pending.add(given);
        sendCommand(given);
    }

    private void sendCommand(Command given) throws RotaException, InterruptedException {
        send(COMMAND, session + " " + given.number + " " + given.text);
    }

    private void send(int kind, String text) throws RotaException, InterruptedException {
        try {
            client.send(Envelope.to(group).service(Service.SAFE).kind(kind), text.getBytes(StandardCharsets.UTF_8));
        } catch (RotaException.Lost lost) {
            // The next view makes good for it.
            return;
        }
    }

    private boolean hasMajority() {
        return view != null && view.members().size() >= majority;
    }

    /** What counts here counts for good. */
    private boolean isSure() {
        return agreed && regular && hasMajority();
    }

    /** Takes the next event, if there is one soon. */
    private void step() throws Exception {
        Event event = client.receive(TURN);
        if (event == null && client.client() == null) {
            // While there is no connection nothing is sure.
            view = null;
            agreed = false;
        }
        if (event instanceof Event.View next) {
            onView(next);
        } else if (event instanceof Event.Transitional) {
            regular = false;
        } else if (event instanceof Event.Message message) {
            onMessage(message);
        } else if (event instanceof Event.Reconnected gap) {
            System.out.println("reconnected " + gap.unsettledBytes() + " bytes unsure");
            me = gap.name();
            view = null;
            agreed = false;
        }
    }

    private void onView(Event.View next) throws RotaException, InterruptedException {
        view = next;
        regular = true;
        agreed = false;
        offers.clear();
        early.clear();
        send(OFFER, next.id() + " " + state.epoch + " " + state.count + " " + state.digest());
    }

    private boolean isOfView(String of) {
        return view != null && !agreed && view.id().toString().equals(of);
    }

    private void onMessage(Event.Message message) throws Exception {
        String text = new String(message.payload(), StandardCharsets.UTF_8);
        if (message.kind() == COMMAND && agreed) {
            onCommand(message.sender(), text);
        } else if (message.kind() == COMMAND) {
            early.add(new Early(message.sender(), text));
        } else if (message.kind() == OFFER) {
            String[] words = text.split(" ");
            if (isOfView(words[0])) {
                Offer offer = new Offer(Long.parseLong(words[1]), Long.parseLong(words[2]), words[3]);
                offered(message.sender(), offer);
            }
        } else if (message.kind() == STATE) {
            int end = text.indexOf('\n');
            if (isOfView(text.substring(0, end))) {
                state.read(text.substring(end + 1));
                agree();
            }
        }
    }

    /** When all members have offered, either all have the same, or the one with the newest sends it to all. */
    private void offered(String sender, Offer offer) throws Exception {
        offers.put(sender, offer);
        if (!offers.keySet().containsAll(view.members())) {
            return;
        }
        Comparator<String> byAge = Comparator.comparingLong(member -> offers.get(member).epoch);
        byAge = byAge.thenComparingLong(member -> offers.get(member).count).thenComparing(Comparator.naturalOrder());
        String last = view.members().stream().max(byAge).orElseThrow();
        if (offers.values().stream().map(Offer::digest).distinct().count() == 1) {
            agree();
        } else if (last.equals(me)) {
            send(STATE, view.id() + "\n" + state.write());
        }
    }

    private void agree() throws Exception {
        agreed = true;
        if (hasMajority()) {
            boolean between = view.id().next() != null;
            state.epoch += between ? view.id().next().seq() : view.id().ring().seq();
            System.out.println("agreed " + state.count + " of " + view.members().size());
        }
        journal.checkpoint(state.write());
        List<Early> waited = early;
        early = new ArrayList<>();
        for (Early command : waited) {
            onCommand(command.sender, command.text);
        }
        sendAgain();
    }

    /** The agreed state tells which own commands count; the others are sent again, in their order. */
    private void sendAgain() throws RotaException, InterruptedException {
        long last = state.last(session);
        while (isSure() && !pending.isEmpty() && pending.peek().number <= last) {
            System.out.println("ok " + pending.poll().number);
        }
        for (Command given : pending) {
            if (given.number > last) {
                sendCommand(given);
            }
        }
    }

    private void onCommand(String sender, String text) throws IOException {
        State.Done done = hasMajority() ? state.apply(sender, text) : null;
        if (done == null) {
            return;
        }
        journal.append(sender + " " + text);
        if (journal.isLong()) {
            journal.checkpoint(state.write());
        }
        boolean isOwn = text.startsWith(session + " ");
        if (isOwn && isSure() && !pending.isEmpty() && pending.peek().number == done.number()) {
            pending.poll();
            System.out.println("ok " + done.number() + " " + done.answer());
        }
    }

    private void dump() {
        System.out.println("state " + state.count + " " + state.digest() + " " + (isSure() ? "sure" : "unsure"));
    }

    /**
     * Runs a copy: lines of the input are commands, and {@code dump} shows what state it is in. At the end of the input it waits until
     * all its commands count, and closes.
     */
    static void run(Machine machine, String[] arguments) throws Exception {
        Replicated copy = new Replicated(machine, arguments);
        // An empty text is the end.
        LinkedBlockingQueue<String> lines = new LinkedBlockingQueue<>();
        Thread reading = new Thread(() -> {
            try {
                BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
                in.lines().filter(line -> !line.isEmpty()).forEach(lines::add);
            } finally {
                lines.add("");
            }
        });
        reading.setDaemon(true);
        reading.start();
        boolean over = false;
        while (!over || !copy.pending.isEmpty()) {
            copy.step();
            String line = lines.poll();
            if (line == null) {
                continue;
            }
            if (line.isEmpty()) {
                over = true;
            } else if (line.equals("dump")) {
                copy.dump();
            } else {
                copy.command(line);
            }
        }
        copy.client.close();
    }
}
