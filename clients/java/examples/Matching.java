import java.util.ArrayList;
import java.util.List;

/**
 * A matching engine with replay: {@code Matching ADDRESS NAME GROUP COPIES JOURNAL}, as many times as there are copies.
 *
 * <p>Commands are {@code buy QUANTITY PRICE}, {@code sell QUANTITY PRICE}, {@code cancel ORDER}; the answer is the order's number and
 * its trades. The best price goes first, at one price the earliest order. `matching` of the examples of crates/client is another copy
 * of the same.
 */
public final class Matching implements Replicated.Machine {
    private record Order(long number, String owner, long quantity, long price) {}

    private long newest;
    /** What was traded so far. */
    private long traded;
    /** The best first. */
    private final List<Order> buys = new ArrayList<>();

    private final List<Order> sells = new ArrayList<>();

    private Matching() {}

    private static long number(String text) {
        boolean digits = !text.isEmpty() && text.chars().allMatch(digit -> digit >= '0' && digit <= '9');
        return digits && text.length() < 19 ? Long.parseLong(text) : 0;
    }

    private String place(boolean isBuy, String owner, long quantity, long price) {
        StringBuilder answer = new StringBuilder().append(++newest);
        List<Order> others = isBuy ? sells : buys;
        long left = quantity;
        while (left > 0 && !others.isEmpty()) {
            Order best = others.get(0);
            if (isBuy ? best.price > price : best.price < price) {
                break;
            }
            long now = Math.min(left, best.quantity);
            answer.append(' ').append(now).append('@').append(best.price).append(" of ").append(best.number);
            left -= now;
            traded += now;
            if (now == best.quantity) {
                others.remove(0);
            } else {
                others.set(0, new Order(best.number, best.owner, best.quantity - now, best.price));
            }
        }
        if (left > 0) {
            List<Order> own = isBuy ? buys : sells;
            int at = 0;
            while (at < own.size() && (isBuy ? own.get(at).price >= price : own.get(at).price <= price)) {
                at++;
            }
            own.add(at, new Order(newest, owner, left, price));
        }
        return answer.toString();
    }

    @Override
    public String apply(String sender, String command) {
        String[] words = command.split(" ");
        if (words.length == 3 && (words[0].equals("buy") || words[0].equals("sell"))) {
            return place(words[0].equals("buy"), sender, number(words[1]), number(words[2]));
        }
        if (words.length == 2 && words[0].equals("cancel")) {
            long order = number(words[1]);
            int before = buys.size() + sells.size();
            buys.removeIf(one -> one.number == order && one.owner.equals(sender));
            sells.removeIf(one -> one.number == order && one.owner.equals(sender));
            return String.valueOf(before - buys.size() - sells.size());
        }
        return "what?";
    }

    private static void write(StringBuilder text, String side, List<Order> orders) {
        for (Order one : orders) {
            text.append(String.join(
                    " ", side, "" + one.number, one.owner, "" + one.quantity, "" + one.price)).append('\n');
        }
    }

    @Override
    public String write() {
        StringBuilder text = new StringBuilder(newest + " " + traded + "\n");
        write(text, "buy", buys);
        write(text, "sell", sells);
        return text.toString();
    }

    @Override
    public void read(String text) {
        buys.clear();
        sells.clear();
        for (String line : text.split("\n")) {
            String[] words = line.split(" ");
            if (words.length == 2) {
                newest = number(words[0]);
                traded = number(words[1]);
            } else {
                Order order = new Order(number(words[1]), words[2], number(words[3]), number(words[4]));
                (words[0].equals("buy") ? buys : sells).add(order);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        Replicated.run(new Matching(), arguments);
    }
}
