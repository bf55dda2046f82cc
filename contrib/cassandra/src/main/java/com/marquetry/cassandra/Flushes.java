package com.marquetry.cassandra;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.SchemaCQLHelper;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.notifications.INotification;
import org.apache.cassandra.notifications.INotificationConsumer;
import org.apache.cassandra.notifications.SSTableAddedNotification;
import org.apache.cassandra.notifications.SSTableListChangedNotification;
import org.apache.cassandra.schema.KeyspaceMetadata;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.concurrent.Ref;

/**
 * A table's flushes, which are linked into the inbox of a {@link Converter} as soon as they are there.
 *
 * <p>The links are made by the thread that flushed: some ten system calls, after the flush itself has written and synced the
 * same files. Once they are there, neither a compaction nor the end of the process can lose the flush. Everything else is
 * done by another process. Whatever fails here is counted and logged, and thrown at nobody.
 *
 * <p>A list on the disk has the SSTables that were seen. What is live when the node starts, and is not in it, was flushed
 * just before the node was killed, and is linked then. (Or a compaction made it in that moment: then its rows are in two
 * files, which is better than in none.)
 */
final class Flushes implements INotificationConsumer
{
    private static final Logger logger = LoggerFactory.getLogger(Flushes.class);

    private static final String DATA = "-Data.db";

    private final ColumnFamilyStore table;
    private final String to;
    private final Said said = new Said();
    private final Set<Converter> converters = new HashSet<>();
    private volatile boolean ended;
    private Counters counters;

    final AtomicLong flushed = new AtomicLong();
    final AtomicLong linked = new AtomicLong();
    final AtomicLong failed = new AtomicLong();
    final AtomicLong leftOut = new AtomicLong();
    final AtomicLong slowestMicros = new AtomicLong();

    Flushes(ColumnFamilyStore table, String to)
    {
        this.table = table;
        this.to = to;
    }

    /** From now on. What is there when the index is new becomes no file. */
    synchronized void listen()
    {
        try
        {
            Path file = seenFile();
            Files.createDirectories(file.getParent());
            if (!Files.exists(file))
            {
                Set<String> live = new TreeSet<>();
                table.getLiveSSTables().forEach(sstable -> live.add(stem(sstable)));
                replaceSeen(live);
            }
        }
        catch (IOException | RuntimeException error)
        {
            failed(error);
        }
        table.getTracker().subscribe(this);
        counters = Counters.register(this, table.metadata());
    }

    Object end()
    {
        ended = true;
        table.getTracker().unsubscribe(this);
        synchronized (this)
        {
            Counters.unregister(counters);
            converters.forEach(converter -> converter.release(this));
            converters.clear();
            try
            {
                Files.deleteIfExists(seenFile());
            }
            catch (IOException | RuntimeException error)
            {
                logger.warn("{}: the list of its SSTables cannot be removed: {}", name(), error.toString());
            }
        }
        return null;
    }

    @Override
    public void handleNotification(INotification notification, Object sender)
    {
        if (ended)
            return;
        try
        {
            if (notification instanceof SSTableAddedNotification)
            {
                SSTableAddedNotification added = (SSTableAddedNotification) notification;
                // Streams and imports come without a memtable.
                if (added.memtable().isPresent())
                    added.added.forEach(this::flushed);
                else
                    added.added.forEach(this::seen);
            }
            else if (notification instanceof SSTableListChangedNotification)
            {
                ((SSTableListChangedNotification) notification).added.forEach(this::seen);
            }
        }
        catch (Throwable error)
        {
            // It must not reach the flush, whatever it is.
            failed(error);
        }
    }

    /** Links what was flushed and not noted. */
    Object catchUp()
    {
        try
        {
            synchronized (this)
            {
                // So that what waits is converted, whether or not anything is flushed.
                for (Path data : Settings.dataDirectories())
                {
                    converter(data);
                    Converter.resume(data);
                }
                Set<String> before = new HashSet<>(Files.readAllLines(seenFile(), StandardCharsets.UTF_8));
                Set<String> live = new TreeSet<>();
                for (SSTableReader sstable : table.getLiveSSTables())
                {
                    String stem = stem(sstable);
                    if (before.contains(stem) || link(sstable))
                        live.add(stem);
                }
                // Without those that are gone.
                replaceSeen(live);
            }
        }
        catch (Throwable error)
        {
            failed(error);
        }
        return null;
    }

    private void flushed(SSTableReader sstable)
    {
        flushed.incrementAndGet();
        // With what it waits for others.
        long started = System.nanoTime();
        synchronized (this)
        {
            if (link(sstable))
                seen(sstable);
        }
        slowestMicros.accumulateAndGet((System.nanoTime() - started) / 1_000, Math::max);
    }

    /** Links it, unless that is done: whether it is known to be linked. */
    private boolean link(SSTableReader sstable)
    {
        // With it, a compaction that is through with it cannot delete it.
        Ref<SSTableReader> held = sstable.tryRef();
        try
        {
            if (held == null)
                throw new NoSuchFileException(sstable.getFilename(), null, "it was compacted before it could be linked");
            Path file = Paths.get(sstable.getFilename()).toAbsolutePath().normalize();
            Path directory = file.getParent();
            Converter converter = converter(Settings.real(directory.getParent().getParent()));
            if (!converter.inbox.hasRoom())
            {
                leftOut.incrementAndGet();
                if (said.isNew("room"))
                    logger.warn("{}: flushes are left out, because too many wait to be converted in {} (-D{}, -D{})", name(),
                                converter.inbox, Settings.WAITING_PROPERTY, Settings.WAITING_MIB_PROPERTY);
                return false;
            }
            converter.inbox.link(directory, stem(sstable), definition());
            linked.incrementAndGet();
            said.clear();
            return true;
        }
        catch (Throwable error)
        {
            failed(error);
            return false;
        }
        finally
        {
            if (held != null)
                held.release();
        }
    }

    private synchronized void seen(SSTableReader sstable)
    {
        try
        {
            Files.write(seenFile(), (stem(sstable) + '\n').getBytes(StandardCharsets.UTF_8), StandardOpenOption.CREATE,
                        StandardOpenOption.APPEND);
        }
        catch (IOException error)
        {
            failed(error);
        }
    }

    private void replaceSeen(Set<String> stems) throws IOException
    {
        Path file = seenFile();
        Path hidden = file.resolveSibling(file.getFileName() + ".new");
        Files.write(hidden, stems, StandardCharsets.UTF_8);
        Files.move(hidden, file, StandardCopyOption.ATOMIC_MOVE);
    }

    private Path seenFile()
    {
        TableMetadata metadata = table.metadata();
        String name = metadata.keyspace + '.' + metadata.name + '-' + metadata.id.toHexString();
        return Settings.dataDirectories().get(0).resolve(Inbox.DIRECTORY).resolve("seen").resolve(name);
    }

    private Converter converter(Path data)
    {
        Converter converter = Converter.of(data, to);
        if (converters.add(converter))
            converter.hold(this);
        return converter;
    }

    /** The table as it is now, in CQL: names of key columns are not in SSTables. */
    private String definition()
    {
        TableMetadata metadata = table.metadata();
        KeyspaceMetadata keyspace = table.keyspace.getMetadata();
        Stream<String> types = SchemaCQLHelper.getUserTypesAsCQL(metadata, keyspace.types, true);
        Stream<String> all = Stream.concat(types, Stream.of(SchemaCQLHelper.getTableMetadataAsCQL(metadata, keyspace)));
        return all.collect(Collectors.joining("\n")) + '\n';
    }

    private static String stem(SSTableReader sstable)
    {
        String file = Paths.get(sstable.getFilename()).getFileName().toString();
        return file.substring(0, file.length() - DATA.length());
    }

    private void failed(Throwable error)
    {
        failed.incrementAndGet();
        if (said.isNew(error.toString()))
            logger.error("{}: a flush does not become a Parquet file (the flush itself is complete; the same is not logged again until one succeeds)",
                         name(), error);
    }

    private String name()
    {
        TableMetadata metadata = table.metadata();
        return metadata.keyspace + '.' + metadata.name;
    }

    synchronized long waiting()
    {
        return converters.stream().mapToLong(converter -> converter.inbox.waiting()).sum();
    }

    synchronized long converted()
    {
        return converters.stream().mapToLong(converter -> converter.converted.get()).sum();
    }

    synchronized long notConverted()
    {
        return converters.stream().mapToLong(converter -> converter.failed.get()).sum();
    }

    synchronized long restarts()
    {
        return converters.stream().mapToLong(converter -> converter.restarts.get()).sum();
    }
}
