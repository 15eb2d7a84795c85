package rota;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

/** Reads the fields of one frame of a daemon. */
final class Reader {
    static final int WELCOME = 0x81;
    static final int INCLUDED = 0x91;
    private static final int MESSAGE = 0x85;
    private static final int REFUSED = 0x82;
    /** The most groups that a daemon names to one who has skipped: all its clients together can be in no more. */
    static final int MOST_SKIPPED = 16_384;

    private final ByteBuffer bytes;

    private Reader(ByteBuffer bytes) {
        this.bytes = bytes.order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Reads the body of a frame: an {@link Event} or a {@link Reply}. */
    static Object read(int kind, ByteBuffer body) throws DecodeException {
        Reader reader = new Reader(body);
        Object reply = reader.reply(kind);
        // What follows a refusal's text is a later version's.
        if (kind != REFUSED && reader.bytes.hasRemaining()) {
            throw new DecodeException("trailing", reader.bytes.remaining() + " bytes follow the frame's last field");
        }
        return reply;
    }

    private Object reply(int kind) throws DecodeException {
        return switch (kind) {
            case WELCOME -> new Reply.Welcome(
                    u16(), name(Names::wrongPrivate), u32(), u32(), bytes.hasRemaining() ? u32() : 0);
            case REFUSED -> new Reply.Refused(new Code(u16()), text());
            case 0x83 -> new Reply.Done(i32());
            case 0x84 -> new Reply.Failed(i32(), new Code(u16()), text());
            case MESSAGE -> message();
            case 0x86 -> view();
            case 0x87 -> new Event.Transitional(name(Names::wrongGroup), viewId());
            case 0x88 -> new Event.SelfLeave(name(Names::wrongGroup));
            case 0x89 -> new Reply.Credit(u32());
            case 0x8a -> new Reply.Groups(i32(), list(6, () -> new GroupSize(name(Names::wrongGroup), u32())));
            case 0x8b -> new Reply.Members(i32(), list(5, () -> name(Names::wrongPrivate)));
            case 0x8c -> new Event.Lagging(amount(), amount());
            case 0x8d -> new Reply.Goodbye(new Code(u16()), text());
            case 0x8e -> new Event.NotSent(u16(), name(Names::wrongDestination), new Code(u16()), text());
            case 0x8f -> new Event.Skipped(amount(), amount(), skipped());
            case 0x90 -> new Event.Excluded();
            case INCLUDED -> new Event.Included(flag());
            default -> throw new DecodeException("kind", "there is no frame of kind " + kind + " here");
        };
    }

    private void need(long count) throws DecodeException {
        if (bytes.remaining() < count) {
            throw new DecodeException("short", "the frame ends before its last field does");
        }
    }

    private int u8() throws DecodeException {
        need(1);
        return bytes.get() & 0xff;
    }

    private int u16() throws DecodeException {
        need(2);
        return bytes.getShort() & 0xffff;
    }

    private int i32() throws DecodeException {
        need(4);
        return bytes.getInt();
    }

    private long u32() throws DecodeException {
        return i32() & 0xffff_ffffL;
    }

    private long i64() throws DecodeException {
        need(8);
        return bytes.getLong();
    }

    /** A number of things or bytes. No long is as large as some, and no daemon has so many: they are cut. */
    private long amount() throws DecodeException {
        long amount = i64();
        return amount < 0 ? Long.MAX_VALUE : amount;
    }

    private boolean flag() throws DecodeException {
        int flags = u8();
        if (flags > 1) {
            throw new DecodeException("flags", "flags " + flags + " have bits that mean nothing");
        }
        return flags == 1;
    }

    private ByteBuffer counted() throws DecodeException {
        int length = u8();
        need(length);
        ByteBuffer text = bytes.slice(bytes.position(), length);
        bytes.position(bytes.position() + length);
        return text;
    }

    private String text() throws DecodeException {
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(counted()).toString();
        } catch (CharacterCodingException error) {
            throw new DecodeException("text", "a text is not UTF-8");
        }
    }

    /** A name, which is legal if that says nothing. */
    private String name(UnaryOperator<String> wrong) throws DecodeException {
        String text = StandardCharsets.ISO_8859_1.decode(counted()).toString();
        String why = wrong.apply(text);
        if (why != null) {
            throw new DecodeException("name", why);
        }
        return text;
    }

    private interface Read<T> {
        T read() throws DecodeException;
    }

    /** A list of things that have at least so many bytes each: its room is for those that can have arrived. */
    private <T> List<T> list(int least, Read<T> read) throws DecodeException {
        return list(u32(), least, read);
    }

    private <T> List<T> list(long count, int least, Read<T> read) throws DecodeException {
        need(count * least);
        List<T> list = new ArrayList<>((int) count);
        for (; count > 0; count--) {
            list.add(read.read());
        }
        return list;
    }

    private List<String> skipped() throws DecodeException {
        long count = u32();
        if (count > MOST_SKIPPED) {
            throw new DecodeException("groups", count + " groups; there may be " + MOST_SKIPPED);
        }
        return list(count, 2, () -> name(Names::wrongGroup));
    }

    private RingId ring() throws DecodeException {
        long seq = i64();
        int representative = u16();
        if (representative == 0) {
            throw new DecodeException("node", "no node has the number 0");
        }
        return new RingId(seq, representative, i64());
    }

    private ViewId viewId() throws DecodeException {
        RingId ring = ring();
        RingId next = flag() ? ring() : null;
        return new ViewId(ring, next, i64());
    }

    private Event.Message message() throws DecodeException {
        String sender = name(Names::wrongPrivate);
        int service = u8();
        if (service < 1 || service > Service.values().length) {
            throw new DecodeException("service", "there is no service " + service);
        }
        boolean selfDiscard = flag();
        int kind = u16();
        int count = u8();
        if (count < 1 || count > Names.MOST_DESTINATIONS) {
            throw new DecodeException("destinations", "a message cannot have " + count + " destinations");
        }
        List<String> to = new ArrayList<>(count);
        for (; count > 0; count--) {
            to.add(name(Names::wrongDestination));
        }
        byte[] payload = new byte[bytes.remaining()];
        bytes.get(payload);
        return new Event.Message(sender, Service.values()[service - 1], selfDiscard, kind, to, payload);
    }

    private Event.View view() throws DecodeException {
        String group = name(Names::wrongGroup);
        ViewId id = viewId();
        int cause = u8();
        String text = name(changed -> changed.isEmpty() ? null : Names.wrongPrivate(changed));
        String changed = text.isEmpty() ? null : text;
        List<String> members = list(5, () -> name(Names::wrongPrivate));
        List<List<Long>> sets = list(8, () -> list(4, this::u32));
        long own = u32();
        if (cause < 1 || cause > Cause.values().length) {
            throw new DecodeException("cause", "there is no cause " + cause);
        }
        boolean network = cause == 4;
        if (!network && !sets.isEmpty() || network && changed == null && !areSets(sets, members.size())) {
            throw new DecodeException("sets", "the sets are not the members, each in one set");
        }
        if (network != (changed == null)) {
            throw new DecodeException("changed", "the changed member does not fit the cause");
        }
        if (own >= members.size()) {
            throw new DecodeException("own-index", "the view has no member " + own);
        }
        List<List<Integer>> indices = sets.stream().map(set -> set.stream().map(Long::intValue).toList()).toList();
        return new Event.View(group, id, Cause.values()[cause - 1], changed, members, indices, (int) own);
    }

    /** Whether each of so many members is in one set, and no set is empty. */
    private static boolean areSets(List<List<Long>> sets, int members) {
        boolean[] seen = new boolean[members];
        int count = 0;
        for (List<Long> set : sets) {
            if (set.isEmpty()) {
                return false;
            }
            for (long at : set) {
                if (at >= members || seen[(int) at]) {
                    return false;
                }
                seen[(int) at] = true;
                count++;
            }
        }
        return count == members;
    }
}
