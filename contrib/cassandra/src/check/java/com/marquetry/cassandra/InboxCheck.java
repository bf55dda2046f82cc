package com.marquetry.cassandra;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Tests of what needs no server: {@code dev/cassandra.sh check-plugin DIR}. (A program, so that neither Maven nor a library of tests is needed.)
 */
final class InboxCheck
{
    private static final String TABLE = "ks/t-0123456789abcdef0123456789abcdef";

    private final Path directory;
    private final Inbox inbox;

    private InboxCheck(Path root) throws IOException
    {
        directory = Files.createDirectories(root.resolve("data").resolve(TABLE));
        inbox = new Inbox(root.resolve("data/.marquetry-index/inbox"));
    }

    public static void main(String[] arguments) throws IOException
    {
        Path root = Path.of(arguments[0]);
        new InboxCheck(root.resolve("names")).namesThatAreUsedAgain();
        new InboxCheck(root.resolve("killed")).whatAKillLeft();
        new InboxCheck(root.resolve("failed")).whatCannotBeConverted();
        System.out.println("the inbox is right");
    }

    /** A name that is used again while the first flush still waits is called otherwise, and each has its own definition. */
    private void namesThatAreUsedAgain() throws IOException
    {
        flush("nb-1-big", "one");
        inbox.link(directory, "nb-1-big", "first");
        // The same once more is one.
        inbox.link(directory, "nb-1-big", "again");
        equal(names(), Set.of("nb-1-big-Data.db", "nb-1-big-Statistics.db", "nb-1-big-TOC.txt", "nb-1-big-schema.cql"));
        remove("nb-1-big");
        flush("nb-1-big", "two");
        inbox.link(directory, "nb-1-big", "second");
        inbox.link(directory, "nb-1-big", "second");
        remove("nb-1-big");
        flush("nb-1-big", "three");
        inbox.link(directory, "nb-1-big", "third");
        equal(inbox.waiting(), 3L);
        equal(read("nb-1-big-Data.db") + read("nb-2000000002-big-Data.db") + read("nb-2000000003-big-Data.db"), "onetwothree");
        equal(read("nb-1-big-schema.cql") + read("nb-2000000002-big-schema.cql") + read("nb-2000000003-big-schema.cql"), "firstsecondthird");
        // The command takes the first away, its data last: until then, the name is not free.
        for (String name : List.of("TOC.txt", "Statistics.db", "schema.cql"))
            Files.delete(folder().resolve("nb-1-big-" + name));
        remove("nb-1-big");
        flush("nb-1-big", "four");
        inbox.link(directory, "nb-1-big", "fourth");
        equal(read("nb-1-big-Data.db") + read("nb-2000000004-big-Data.db"), "onefour");
        // What is gone is an error, and nothing is complete of it.
        remove("nb-1-big");
        try
        {
            inbox.link(directory, "nb-1-big", "gone");
            throw new AssertionError("it is gone");
        }
        catch (IOException gone)
        {
            equal(inbox.waiting(), 3L);
        }
        // Nor is anything kept of what is gone in part.
        flush("nb-9-big", "nine");
        Files.delete(directory.resolve("nb-9-big-Statistics.db"));
        try
        {
            inbox.link(directory, "nb-9-big", "gone");
            throw new AssertionError("a part of it is gone");
        }
        catch (IOException gone)
        {
            equal(names().stream().filter(name -> name.startsWith("nb-9")).count(), 0L);
        }
        remove("nb-9-big");
    }

    /** Links that a node was killed over are removed before the command is started, and made anew. */
    private void whatAKillLeft() throws IOException
    {
        flush("nb-1-big", "one");
        inbox.link(directory, "nb-1-big", "first");
        flush("nb-2-big", "two");
        inbox.link(directory, "nb-2-big", "second");
        Files.delete(folder().resolve("nb-2-big-TOC.txt"));
        remove("nb-2-big");
        // A definition of all that waits is no SSTable's.
        Files.write(folder().resolve("schema.cql"), new byte[1]);
        equal(inbox.sweep(), 0);
        equal(names().contains("schema.cql"), true);
        equal(names().stream().filter(name -> name.startsWith("nb-2")).count(), 0L);
        equal(inbox.waiting(), 1L);
        flush("nb-2-big", "two");
        inbox.link(directory, "nb-2-big", "second");
        equal(inbox.waiting(), 2L);
    }

    /** What cannot be converted does not wait, and does not keep more room than may wait; without an index, it keeps none. */
    private void whatCannotBeConverted() throws IOException
    {
        System.setProperty(Settings.WAITING_PROPERTY, "2");
        System.setProperty(Settings.WAITING_MIB_PROPERTY, "1");
        for (int number = 1; number <= 4; number++)
            held("links", "nb-" + number + "-big", number);
        held("links.1", "nb-1-big", 9);
        equal(inbox.waiting(), 5L);
        equal(inbox.hasRoom(), false);
        Files.write(inbox.work.resolve("state"), List.of(
            "marquetry-watch 1", "failed " + TABLE + " nb-1-big-00000001 nb-1-big-Data.db: a checksum differs", "failed " + TABLE + " nb-2-big-00000002",
            "failed " + TABLE + " nb-3-big-00000003 x", "failed " + TABLE + " nb-4-big-00000004 y", "convert " + TABLE + " nb-1-big-00000009"));
        equal(inbox.waiting(), 1L);
        equal(inbox.hasRoom(), true);
        flush("nb-5-big", "five");
        inbox.link(directory, "nb-5-big", "fifth");
        equal(inbox.waiting(), 2L);
        equal(inbox.hasRoom(), false);
        // Each has 400 KiB: the oldest two are more than a MiB allows.
        equal(inbox.releaseOldest(), 2);
        equal(inbox.sweep(), 0);
        equal(inbox.waiting(), 2L);
        equal(left(), Set.of("links/nb-3-big", "links/nb-4-big", "links.1/nb-1-big"));
        equal(inbox.releaseFailed(), 2);
        equal(left(), Set.of("links.1/nb-1-big"));
        equal(inbox.waiting(), 2L);
    }

    private Set<String> left() throws IOException
    {
        Set<String> left = new TreeSet<>();
        for (String links : List.of("links", "links.1"))
            for (String name : names(inbox.work.resolve(links).resolve(TABLE)))
                left.add(links + '/' + name.substring(0, name.indexOf("-big") + 4));
        return left;
    }

    /** What the command holds. */
    private void held(String links, String stem, int time) throws IOException
    {
        Path folder = Files.createDirectories(inbox.work.resolve(links).resolve(TABLE));
        Path data = Files.write(folder.resolve(stem + "-Data.db"), new byte[400 << 10]);
        Files.setLastModifiedTime(data, FileTime.fromMillis(1_000L * time));
        Files.write(folder.resolve(stem + "-Statistics.db"), new byte[1]);
        Files.writeString(folder.resolve(stem + "-Digest.crc32"), time + "\n");
        Files.write(folder.resolve(stem + "-TOC.txt"), List.of("Data.db", "Statistics.db", "Digest.crc32", "TOC.txt"));
    }

    private void flush(String stem, String data) throws IOException
    {
        Files.write(directory.resolve(stem + "-Data.db"), data.getBytes(StandardCharsets.UTF_8));
        Files.write(directory.resolve(stem + "-Statistics.db"), new byte[1]);
        // Of an index, which is gone.
        Files.write(directory.resolve(stem + "-TOC.txt"), List.of("Statistics.db", "SAI+x.db", "Data.db", "TOC.txt"));
    }

    private void remove(String stem) throws IOException
    {
        for (String name : names(directory))
            if (name.startsWith(stem + '-'))
                Files.delete(directory.resolve(name));
    }

    private Path folder()
    {
        return inbox.root.resolve(TABLE);
    }

    private String read(String name) throws IOException
    {
        return Files.readString(folder().resolve(name));
    }

    private Set<String> names() throws IOException
    {
        return names(folder());
    }

    private static Set<String> names(Path folder) throws IOException
    {
        if (!Files.exists(folder))
            return Set.of();
        try (Stream<Path> files = Files.list(folder))
        {
            return files.map(file -> file.getFileName().toString()).collect(Collectors.toSet());
        }
    }

    private static void equal(Object found, Object expected)
    {
        if (!found.equals(expected))
            throw new AssertionError(found + " instead of " + expected);
    }
}
