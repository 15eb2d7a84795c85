import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;

/** Loads a ledger in a closed loop: each client appends the next entry when the last is acknowledged. Arguments: metadata, clients, bytes, seconds. */
public class Load {
    public static void main(String[] arguments) throws Exception {
        int clients = Integer.parseInt(arguments[1]);
        byte[] value = new byte[Integer.parseInt(arguments[2])];
        long seconds = Long.parseLong(arguments[3]);
        Arrays.fill(value, (byte) 'v');
        ClientConfiguration of = new ClientConfiguration();
        of.setMetadataServiceUri(arguments[0]);
        of.setThrottleValue(0);
        BookKeeper keeper = new BookKeeper(of);
        LedgerHandle ledger = keeper.createLedger(3, 3, 2, BookKeeper.DigestType.CRC32C, "load".getBytes());
        long begin = System.nanoTime() + 2_000_000_000L;
        long end = begin + seconds * 1_000_000_000L;
        List<Long> took = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        int[] failed = new int[1];
        for (int i = 0; i < clients; i++) {
            Thread thread = new Thread(() -> {
                List<Long> own = new ArrayList<>();
                int bad = 0;
                while (System.nanoTime() < end) {
                    long asked = System.nanoTime();
                    try {
                        ledger.append(value);
                        long now = System.nanoTime();
                        if (asked > begin && now < end) {
                            own.add(now - asked);
                        }
                    } catch (Exception error) {
                        bad++;
                    }
                }
                synchronized (took) {
                    took.addAll(own);
                    failed[0] += bad;
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        long[] all = took.stream().mapToLong(Long::longValue).sorted().toArray();
        if (all.length == 0) {
            System.out.println("nothing was done");
            System.exit(1);
        }
        System.out.printf("%d a second, p50 %d us, p99 %d us, max %d us, failed %d%n", all.length / seconds,
            at(all, .5), at(all, .99), at(all, 1), failed[0]);
        ledger.close();
        keeper.close();
        System.exit(0);
    }

    private static long at(long[] all, double part) {
        return all[(int) (part * (all.length - 1))] / 1000;
    }
}
