package rota;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** One block of a file of docs/protocols/vectors. */
record Vector(String name, List<String[]> lines) {
    static Map<String, Vector> all(String file) {
        String folder = System.getProperty("rota.vectors");
        List<String> text;
        try {
            text = Files.readAllLines(Path.of(folder, file));
        } catch (IOException error) {
            throw new AssertionError(error);
        }
        Map<String, Vector> all = new LinkedHashMap<>();
        Vector current = null;
        for (String line : text) {
            String[] parts = line.split(" ", 2);
            if (line.startsWith("#")) {
                continue;
            }
            if (line.isEmpty()) {
                current = null;
            } else if (current == null) {
                current = new Vector(parts[1], new ArrayList<>());
                all.put(current.name, current);
            } else {
                current.lines.add(parts.length == 2 ? parts : new String[] {parts[0], ""});
            }
        }
        Tests.check(all.size() >= 3, file + " has too few vectors");
        return all;
    }

    List<String> every(String key) {
        return lines.stream().filter(line -> line[0].equals(key)).map(line -> line[1]).toList();
    }

    String one(String key) {
        List<String> found = every(key);
        Tests.check(found.size() == 1, name + " has " + found + " as " + key);
        return found.get(0);
    }

    String orEmpty(String key) {
        String value = one(key);
        return value.equals("-") ? "" : value;
    }

    int number(String key) {
        return Integer.parseUnsignedInt(one(key));
    }

    boolean flag(String key) {
        return one(key).equals("yes");
    }

    byte[] bytes(String key) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (String text : every(key)) {
            if (text.equals("-")) {
                continue;
            }
            String[] parts = text.split("\\*");
            byte[] part = HexFormat.of().parseHex(parts[0]);
            int times = parts.length == 2 ? Integer.parseInt(parts[1]) : 1;
            for (; times > 0; times--) {
                all.writeBytes(part);
            }
        }
        return all.toByteArray();
    }

    /** All lines but the bytes of the frame. */
    List<String> fields() {
        return lines.stream().filter(line -> !line[0].equals("bytes")).map(line -> line[0] + " " + line[1]).toList();
    }

    Envelope envelope() {
        Service service = Service.valueOf(one("service").toUpperCase());
        return new Envelope(every("to"), service, number("message-kind"), flag("self-discard"));
    }

    WhenSlow whenSlow() {
        return WhenSlow.valueOf(one("when-slow").toUpperCase().replace('-', '_'));
    }

    /** Bytes as vectors have them. */
    static List<String> runs(byte[] all) {
        int run = 32;
        int width = 96;
        List<String> out = new ArrayList<>();
        StringBuilder line = new StringBuilder();
        int at = 0;
        while (at < all.length) {
            int end = at;
            while (end < all.length && all[end] == all[at]) {
                end++;
            }
            String digits = HexFormat.of().toHexDigits(all[at]);
            if (end - at >= run) {
                if (line.length() > 0) {
                    out.add(line.toString());
                    line.setLength(0);
                }
                out.add(digits + "*" + (end - at));
            } else {
                for (int count = at; count < end; count++) {
                    if (line.length() >= width) {
                        out.add(line.toString());
                        line.setLength(0);
                    }
                    line.append(digits);
                }
            }
            at = end;
        }
        if (line.length() > 0) {
            out.add(line.toString());
        }
        return out.isEmpty() ? List.of("-") : out;
    }
}
