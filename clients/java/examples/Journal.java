import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.List;

/** A file {@code LENGTH}, so many bytes of a state, and a line for each command behind it. */
final class Journal {
    /** So many commands behind a checkpoint are enough for another. */
    private static final int LONG = 100;

    private final Path path;
    private FileChannel file;
    private int commands;

    Journal(Path path) {
        this.path = path;
    }

    /** What a journal has. */
    record Found(String state, List<String> commands) {}

    /** What there is, null if nothing; a last line that was cut off is none. */
    Found read() throws IOException {
        if (!Files.exists(path)) {
            return null;
        }
        // A character for each byte: lengths are of bytes.
        String all = Files.readString(path, StandardCharsets.ISO_8859_1);
        int begin = all.indexOf('\n') + 1;
        int end = begin + Integer.parseInt(all.substring(0, begin - 1));
        String whole = all.substring(end, Math.max(end, all.lastIndexOf('\n') + 1));
        return new Found(utf8(all.substring(begin, end)), utf8(whole).lines().toList());
    }

    private static String utf8(String bytes) {
        return new String(bytes.getBytes(StandardCharsets.ISO_8859_1), StandardCharsets.UTF_8);
    }

    private static void write(FileChannel to, byte[] bytes) throws IOException {
        ByteBuffer left = ByteBuffer.wrap(bytes);
        while (left.hasRemaining()) {
            to.write(left);
        }
    }

    /** Begins anew with this state: the old file stays until the new one is on disk. */
    void checkpoint(String state) throws IOException {
        Path next = path.resolveSibling(path.getFileName() + ".new");
        byte[] bytes = state.getBytes(StandardCharsets.UTF_8);
        try (FileChannel out = FileChannel.open(
                next, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE)) {
            write(out, (bytes.length + "\n").getBytes(StandardCharsets.US_ASCII));
            write(out, bytes);
            out.force(true);
        }
        Files.move(next, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        if (file != null) {
            file.close();
        }
        file = FileChannel.open(path, StandardOpenOption.WRITE, StandardOpenOption.APPEND);
        commands = 0;
    }

    void append(String command) throws IOException {
        write(file, (command + "\n").getBytes(StandardCharsets.UTF_8));
        commands++;
    }

    boolean isLong() {
        return commands >= LONG;
    }
}
