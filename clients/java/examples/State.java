import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;

/** What the copies agree on: the machine, and which commands count. */
final class State {
    private final Replicated.Machine machine;
    /** Of all views with a majority that the state has been through, the numbers of their rings added up. */
    long epoch;
    /** Commands that count. */
    long count;
    /** The newest command of each session that counts. */
    private final Map<String, Long> sessions = new TreeMap<>();

    State(Replicated.Machine machine) {
        this.machine = machine;
    }

    /** The number of a command, and its answer. */
    record Done(long number, String answer) {}

    /** {@code EPOCH COUNT}, a line {@code SESSION NUMBER} for each session, an empty line, and the machine's text. */
    String write() {
        StringBuilder text = new StringBuilder(epoch + " " + count + "\n");
        sessions.forEach((session, number) -> text.append(session).append(' ').append(number).append('\n'));
        return text.append('\n').append(machine.write()).toString();
    }

    /** The opposite. */
    void read(String text) {
        int end = text.indexOf("\n\n");
        String[] lines = text.substring(0, end).split("\n");
        String[] first = lines[0].split(" ");
        epoch = Long.parseLong(first[0]);
        count = Long.parseLong(first[1]);
        sessions.clear();
        for (int at = 1; at < lines.length; at++) {
            String[] words = lines[at].split(" ");
            sessions.put(words[0], Long.parseLong(words[1]));
        }
        machine.read(text.substring(end + 2));
    }

    /** FNV-1a of 64 bits: to tell states apart, not to keep anybody from forging one. */
    String digest() {
        long hash = 0xcbf29ce484222325L;
        for (byte one : write().getBytes(StandardCharsets.UTF_8)) {
            hash = (hash ^ (one & 0xff)) * 0x100000001b3L;
        }
        return String.format("%016x", hash);
    }

    /** The newest command of a session that counts. */
    long last(String session) {
        return sessions.getOrDefault(session, 0L);
    }

    /** Does a command {@code SESSION NUMBER TEXT}; null if it counts already. */
    Done apply(String sender, String command) {
        String[] words = command.split(" ", 3);
        long number = Long.parseLong(words[1]);
        if (number != last(words[0]) + 1) {
            return null;
        }
        sessions.put(words[0], number);
        count++;
        return new Done(number, machine.apply(sender, words[2]));
    }
}
