package com.marquetry.cassandra;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

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
    private static final List<String> NEEDED = List.of("Data.db", "Statistics.db", "CompressionInfo.db");

    final Path root;
    final Path work;
    private final Map<Path, String> definitions = new HashMap<>();

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

    /** Links what the SSTable's table of contents lists; the table of contents last, because it says that all is there. */
    synchronized void link(Path directory, String stem, String definition) throws IOException
    {
        create();
        Path folder = root.resolve(directory.getParent().getFileName()).resolve(directory.getFileName());
        if (Files.exists(folder.resolve(stem + TOC)))
            return;
        Files.createDirectories(folder);
        define(folder, definition);
        List<String> components = Files.readAllLines(directory.resolve(stem + TOC), StandardCharsets.UTF_8);
        for (String component : components)
        {
            String name = stem + '-' + component.trim();
            if (component.isBlank() || name.endsWith(TOC))
                continue;
            try
            {
                link(directory, folder, name);
            }
            catch (NoSuchFileException gone)
            {
                // Components of indexes come and go, and are not read.
                if (NEEDED.contains(component.trim()))
                    throw gone;
            }
        }
        link(directory, folder, stem + TOC);
    }

    private static void link(Path from, Path to, String name) throws IOException
    {
        try
        {
            Files.createLink(to.resolve(name), from.resolve(name));
        }
        catch (FileAlreadyExistsException left)
        {
            // By a process that was killed; or of another SSTable, whose name is used again.
            Files.delete(to.resolve(name));
            Files.createLink(to.resolve(name), from.resolve(name));
        }
    }

    private void define(Path folder, String definition) throws IOException
    {
        Path file = folder.resolve("schema.cql");
        if (definition.equals(definitions.get(folder)) && Files.exists(file))
            return;
        Path hidden = folder.resolve("schema.cql.new");
        Files.write(hidden, definition.getBytes(StandardCharsets.UTF_8));
        Files.move(hidden, file, StandardCopyOption.ATOMIC_MOVE);
        definitions.put(folder, definition);
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

    private Waiting count() throws IOException
    {
        Waiting waiting = new Waiting();
        // First where they come from: one that is moved meanwhile counts twice, not never.
        List<Path> places = new ArrayList<>(List.of(root));
        // `links`, and `links.1` and so on, of names that were used again while others waited.
        for (Path place : entries(work))
            if (place.getFileName().toString().matches("links(\\.[0-9]+)?"))
                places.add(place);
        for (Path place : places)
            for (Path keyspace : entries(place))
                for (Path folder : entries(keyspace))
                    for (Path file : entries(folder))
                        waiting.add(file);
        return waiting;
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
            if (!name.endsWith("-Data.db"))
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
