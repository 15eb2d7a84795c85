package rota;

/** A group that the daemon knows of, and how many members it has. */
public record GroupSize(String group, long members) {}
