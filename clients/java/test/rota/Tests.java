package rota;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;

/** Runs all tests: the static methods without arguments of these classes whose names begin with test. */
public final class Tests {
    private static final List<Class<?>> CLASSES =
            List.of(VectorsTest.class, ClientTest.class, ReconnectingTest.class, CutsTest.class);

    /** Nothing in these tests takes longer, unless it hangs. */
    static final Duration PATIENCE = Duration.ofSeconds(20);

    private Tests() {}

    public static void main(String[] arguments) throws Exception {
        int passed = 0;
        int failed = 0;
        for (Class<?> tests : CLASSES) {
            Method[] methods = tests.getDeclaredMethods();
            Arrays.sort(methods, Comparator.comparing(Method::getName));
            for (Method method : methods) {
                if (!method.getName().startsWith("test") || !Modifier.isStatic(method.getModifiers())) {
                    continue;
                }
                String name = tests.getSimpleName() + "." + method.getName();
                try {
                    method.invoke(null);
                    noneLeft();
                    passed++;
                    System.out.println("ok " + name);
                } catch (InvocationTargetException error) {
                    failed++;
                    System.out.println("FAILED " + name);
                    error.getCause().printStackTrace(System.out);
                } catch (AssertionError error) {
                    failed++;
                    System.out.println("FAILED " + name + ": " + error.getMessage());
                }
            }
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 && passed > 0 ? 0 : 1);
    }

    /** No thread of a client is left. */
    private static void noneLeft() throws InterruptedException {
        long until = System.nanoTime() + PATIENCE.toNanos();
        while (true) {
            List<String> left = Thread.getAllStackTraces().keySet().stream()
                    .map(Thread::getName)
                    .filter(name -> name.startsWith("rota-"))
                    .toList();
            if (left.isEmpty()) {
                return;
            }
            check(System.nanoTime() < until, "left behind: " + left);
            Thread.sleep(1);
        }
    }

    static void check(boolean holds, Object about) {
        if (!holds) {
            throw new AssertionError(String.valueOf(about));
        }
    }

    static void equal(Object found, Object expected) {
        check(Objects.equals(found, expected), "found " + found + ", expected " + expected);
    }

    interface Call {
        void run() throws Exception;
    }

    /** The exception of a call, which is of this class. */
    static <T extends Exception> T fails(Class<T> expected, Call call) {
        try {
            call.run();
        } catch (Exception error) {
            if (expected.isInstance(error)) {
                return expected.cast(error);
            }
            throw new AssertionError("it is " + error, error);
        }
        throw new AssertionError("nothing was thrown, not " + expected.getSimpleName());
    }
}
