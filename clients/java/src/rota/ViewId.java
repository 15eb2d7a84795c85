package rota;

/** Names a view: equal ids are equal views. {@code next} is the ring that follows, or null. */
public record ViewId(RingId ring, RingId next, long index) {
    @Override
    public String toString() {
        String follows = next == null ? "" : ">" + next;
        return ring + follows + "/" + Long.toUnsignedString(index);
    }
}
