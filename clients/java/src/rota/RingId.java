package rota;

/** Names a ring of daemons. Its number and the incarnation have no sign. */
public record RingId(long seq, int representative, long incarnation) {
    @Override
    public String toString() {
        return Long.toUnsignedString(seq) + "." + representative + "." + Long.toUnsignedString(incarnation);
    }
}
