package rota;

import java.util.List;

/** Frames of a daemon that are no events. */
interface Reply {
    record Welcome(int version, String name, long credit, long largestPayload, long memory) implements Reply {}

    record Refused(Code code, String text) implements Reply {}

    record Done(int request) implements Reply {}

    record Failed(int request, Code code, String text) implements Reply {}

    record Credit(long bytes) implements Reply {}

    record Groups(int request, List<GroupSize> groups) implements Reply {}

    record Members(int request, List<String> members) implements Reply {}

    record Goodbye(Code code, String text) implements Reply {}
}
