package com.marquetry.cassandra;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A directory of hard links to SSTables, laid out as a data directory, which {@code marquetry watch --inbox} empties.
 *
 * <p>It is on the file system of the SSTables, in {@code DATA/.marquetry-index}; servers pass over names that begin so.
 */
final class Inbox
{
    static final String DIRECTORY = ".marquetry-index";

    /** Without it, {@code marquetry watch --inbox} refuses to take anything out of a directory. */
    private static final String MARK = "_marquetry_inbox";

    private static final String TOC = "-TOC.txt";
    private static final String DATA = "-Data.db";
    /** The table as it was when the SSTable was flushed, beside its files. */
    private static final String SCHEMA = "-schema.cql";
    private static final List<String> NEEDED = List.of("Data.db", "Statistics.db", "CompressionInfo.db");
    /** Numbers of names that were used again. Servers count from 1, and have 31 bits. */
    private static final int FIRST_NUMBER = 2_000_000_000;
    /** What the file of the command's decisions says of an SSTable that it cannot convert: where its table is, and its name with its digest. */
    private static final Pattern FAILED = Pattern.compile("failed (\\S+ \\S+-[0-9a-f]{8})( .*)?");

    final Path root;
    final Path work;

    /** @param group the directory of the inbox, and of what the command keeps */
    Inbox(Path group)
    {
        root = group.resolve("inbox");
        work = group.resolve("work");
    }

    void create() throws IOException
    {
        Files.createDirectories(root);
        Path mark = root.resolve(MARK);
        if (!Files.exists(mark))
            Files.write(mark, "Links to SSTables, which are removed when they are converted.\n".getBytes(StandardCharsets.UTF_8));
    }

    /**
     * Links what the SSTable's table of contents lists: the data first, so that they tell whose links there are, and the table of contents last, because
     * it says that all is there.
     */
    synchronized void link(Path directory, String stem, String definition) throws IOException
    {
        create();
        Path folder = root.resolve(directory.getParent().getFileName()).resolve(directory.getFileName());
        Files.createDirectories(folder);
        Path data = directory.resolve(stem + DATA);
        String own = stem;
        // A server uses a name again, after a TRUNCATE and a restart: while another SSTable of that name waits, this one is called otherwise.
        for (int number = 2; isTaken(folder, own, data); number++)
            own = numbered(stem, number);
        if (Files.exists(folder.resolve(own + TOC)))
            return;
        try
        {
            linkAll(directory, stem, folder, own, definition);
        }
        catch (IOException error)
        {
            // What was linked would keep its room on a disk that is perhaps full.
            removeAll(folder, own);
            throw error;
        }
    }

    private static void linkAll(Path directory, String stem, Path folder, String own, String definition) throws IOException
    {
        link(directory.resolve(stem + DATA), folder.resolve(own + DATA));
        Files.write(folder.resolve(own + SCHEMA), definition.getBytes(StandardCharsets.UTF_8));
        for (String line : Files.readAllLines(directory.resolve(stem + TOC), StandardCharsets.UTF_8))
        {
            String component = line.trim();
            if (component.isEmpty() || component.equals("TOC.txt") || component.equals("Data.db"))
                continue;
            try
            {
                link(directory.resolve(stem + '-' + component), folder.resolve(own + '-' + component));
            }
            catch (NoSuchFileException gone)
            {
                // Components of indexes come and go, and are not read.
                if (NEEDED.contains(component))
                    throw gone;
            }
        }
        link(directory.resolve(stem + TOC), folder.resolve(own + TOC));
    }

    /** Whether a name is that of another SSTable, of which all or some is there. */
    private static boolean isTaken(Path folder, String stem, Path data) throws IOException
    {
        try
        {
            return !Files.isSameFile(folder.resolve(stem + DATA), data);
        }
        catch (NoSuchFileException free)
        {
            if (!Files.exists(data))
                throw free;
            return Files.exists(folder.resolve(stem + TOC));
        }
    }

    /**
     * {@code nb-2000000002-big}: a number that a server takes for one of its own, and does not reach. At its start it looks at all names that end in {@code .db} below
     * its data directories, this one too, and does not start if one is none of an SSTable.
     */
    private static String numbered(String stem, int number)
    {
        int start = stem.indexOf('-') + 1;
        int end = stem.lastIndexOf('-');
        return stem.substring(0, start) + (FIRST_NUMBER + number) + stem.substring(end);
    }

    private static void link(Path from, Path to) throws IOException
    {
        try
        {
            Files.createLink(to, from);
        }
        catch (FileAlreadyExistsException left)
        {
            // By a process that was killed.
            Files.delete(to);
            Files.createLink(to, from);
        }
    }

    /**
     * Removes what nobody will convert, before the command is started: links that a node that was killed did not complete (it makes them anew), and the oldest
     * of those that cannot be converted, if they keep more on the disk than may wait.
     */
    synchronized int sweep() throws IOException
    {
        for (Path keyspace : entries(root))
            for (Path folder : entries(keyspace))
                for (Path file : entries(folder))
                    if (!stem(file).isEmpty() && !Files.exists(folder.resolve(stem(file) + TOC)))
                        Files.deleteIfExists(file);
        return release(Settings.waitingBytes());
    }

    /** Removes the oldest of what cannot be converted, if it keeps more on the disk than may wait. */
    synchronized int releaseOldest() throws IOException
    {
        return release(Settings.waitingBytes());
    }

    /** Removes all that cannot be converted: nobody will try it again. */
    synchronized int releaseFailed() throws IOException
    {
        return release(0);
    }

    /** Removes the links of the oldest that cannot be converted, until the others have at most so many bytes: how many these are. */
    private int release(long most) throws IOException
    {
        TreeMap<FileTime, List<Path>> failed = new TreeMap<>();
        long bytes = 0;
        Set<String> names = failed();
        for (Path folder : linked())
            for (Path file : entries(folder))
                if (file.getFileName().toString().endsWith(DATA) && isOf(names, file))
                {
                    failed.computeIfAbsent(Files.getLastModifiedTime(file), it -> new ArrayList<>()).add(file);
                    bytes += Files.size(file);
                }
        int released = 0;
        for (List<Path> oldest : failed.values())
            for (Path data : oldest)
            {
                if (bytes <= most)
                    return released;
                bytes -= Files.size(data);
                removeAll(data.getParent(), stem(data));
                released++;
            }
        return released;
    }

    /** Removes the links of an SSTable: the table of contents first, because what is left without it is known to be incomplete. */
    private static void removeAll(Path folder, String stem) throws IOException
    {
        Files.deleteIfExists(folder.resolve(stem + TOC));
        for (Path file : entries(folder))
            if (file.getFileName().toString().startsWith(stem + '-'))
                Files.deleteIfExists(file);
    }

    /** Whether one more SSTable may wait. What waits keeps its room on the disk, also if the server has deleted it. */
    boolean hasRoom() throws IOException
    {
        Waiting waiting = count();
        return waiting.sstables < Settings.waiting() && waiting.bytes < Settings.waitingBytes();
    }

    /** SSTables that wait; -1 if they cannot be counted. */
    long waiting()
    {
        try
        {
            return count().sstables;
        }
        catch (IOException error)
        {
            return -1;
        }
    }

    boolean isEmpty()
    {
        return waiting() == 0;
    }

    /** Those that cannot be converted do not wait. */
    private Waiting count() throws IOException
    {
        Waiting waiting = new Waiting();
        // First where they come from: one that is moved meanwhile counts twice, not never.
        for (Path keyspace : entries(root))
            for (Path folder : entries(keyspace))
                for (Path file : entries(folder))
                    waiting.add(file);
        Set<String> failed = failed();
        for (Path folder : linked())
            for (Path file : entries(folder))
                if (isCounted(file) && !isOf(failed, file))
                    waiting.add(file);
        return waiting;
    }

    /** The command's directories of links to SSTables of a table. */
    private List<Path> linked() throws IOException
    {
        List<Path> folders = new ArrayList<>();
        // `links`, and `links.1` and so on, of names that were used again while others waited.
        for (Path place : entries(work))
            if (place.getFileName().toString().matches("links(\\.[0-9]+)?"))
                for (Path keyspace : entries(place))
                    entries(keyspace).forEach(folders::add);
        return folders;
    }

    /** What the command has decided that it cannot convert: where its table is, and its name with its digest. */
    private Set<String> failed() throws IOException
    {
        Set<String> failed = new HashSet<>();
        List<String> lines;
        try
        {
            lines = Files.readAllLines(work.resolve("state"), StandardCharsets.UTF_8);
        }
        catch (NoSuchFileException none)
        {
            return failed;
        }
        for (String line : lines)
        {
            Matcher matcher = FAILED.matcher(line);
            if (matcher.matches())
                failed.add(matcher.group(1));
        }
        return failed;
    }

    private static boolean isCounted(Path file)
    {
        String name = file.getFileName().toString();
        return name.endsWith(TOC) || name.endsWith(DATA);
    }

    /** Whether a file is one of these SSTables'. One whose digest cannot be read is not. */
    private static boolean isOf(Set<String> names, Path file) throws IOException
    {
        String stem = stem(file);
        if (names.isEmpty() || stem.isEmpty())
            return false;
        try
        {
            long digest = Long.parseLong(Files.readString(file.resolveSibling(stem + "-Digest.crc32")).trim());
            Path folder = file.getParent();
            return names.contains(String.format("%s/%s %s-%08x", folder.getParent().getFileName(), folder.getFileName(), stem, digest));
        }
        catch (NoSuchFileException | NumberFormatException unknown)
        {
            return false;
        }
    }

    /** {@code nb-7-big}. */
    private static String stem(Path file)
    {
        String[] parts = file.getFileName().toString().split("-", 4);
        return parts.length < 4 ? "" : parts[0] + '-' + parts[1] + '-' + parts[2];
    }

    /** What a directory has; nothing if it is none, or is gone. */
    private static Iterable<Path> entries(Path directory) throws IOException
    {
        List<Path> all = new ArrayList<>();
        try (DirectoryStream<Path> stream = Files.newDirectoryStream(directory))
        {
            stream.forEach(all::add);
        }
        catch (NoSuchFileException | NotDirectoryException none)
        {
            return List.of();
        }
        return all;
    }

    private static final class Waiting
    {
        private long sstables;
        private long bytes;

        private void add(Path file) throws IOException
        {
            String name = file.getFileName().toString();
            if (name.endsWith(TOC))
                sstables++;
            if (!name.endsWith(DATA))
                return;
            try
            {
                bytes += Files.size(file);
            }
            catch (NoSuchFileException converted)
            {
                // Meanwhile.
            }
        }
    }

    @Override
    public String toString()
    {
        return root.getParent().toString();
    }
}
