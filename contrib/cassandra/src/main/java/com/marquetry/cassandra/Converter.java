package com.marquetry.cassandra;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A process that converts what is in an inbox: {@code marquetry watch}, started again when it ends.
 *
 * <p>Tables of one data directory and one destination share it. It ends with the node: its standard input is a pipe from it.
 */
final class Converter
{
    private static final Logger logger = LoggerFactory.getLogger(Converter.class);

    /** A file of a group whose indexes were dropped. */
    private static final String DROPPED = "dropped";

    private static final long PAUSE_MS = 1_000;
    private static final long PAUSE_MS_MAX = 60_000;
    /** How often it is looked whether an inbox that nobody fills any more is empty. */
    private static final long LOOK_MS = 200;

    private static final Pattern EVENT = Pattern.compile("\"event\":\"([a-z]+)\"");
    private static final Pattern TEXT = Pattern.compile("\"(subject|error|text)\":\"((?:[^\"\\\\]|\\\\.)*)\"");

    private static final Map<Path, Converter> ALL = new HashMap<>();

    final Inbox inbox;
    final AtomicLong converted = new AtomicLong();
    final AtomicLong failed = new AtomicLong();
    final AtomicLong restarts = new AtomicLong();

    private final Path group;
    private final String destination;
    private final Said said = new Said();
    /** The tables that use it. */
    private final Set<Object> holders = new HashSet<>();
    private Thread thread;

    private Converter(Path group, String destination)
    {
        this.group = group;
        inbox = new Inbox(group);
        this.destination = destination;
    }

    /** The one of a data directory and an option {@code to}. */
    static Converter of(Path data, String to)
    {
        String name = to.isEmpty() ? "inbox" : "inbox-" + to.replace('/', '+');
        Path group = data.resolve(Inbox.DIRECTORY).resolve(name);
        synchronized (ALL)
        {
            return ALL.computeIfAbsent(group, it -> new Converter(it, Settings.destination(data, to)));
        }
    }

    /** Converts what is left in inboxes of a data directory whose indexes were dropped before the node was restarted. */
    static void resume(Path data)
    {
        try (DirectoryStream<Path> groups = Files.newDirectoryStream(data.resolve(Inbox.DIRECTORY), "inbox*"))
        {
            for (Path group : groups)
            {
                if (!Files.exists(group.resolve(DROPPED)))
                    continue;
                String name = group.getFileName().toString();
                Converter left = of(data, name.equals("inbox") ? "" : name.substring("inbox-".length()).replace('+', '/'));
                synchronized (left)
                {
                    left.start();
                }
            }
        }
        catch (NoSuchFileException none)
        {
            return;
        }
        catch (IOException | RuntimeException error)
        {
            logger.warn("{}: what waits there is not looked at: {}", data.resolve(Inbox.DIRECTORY), error.toString());
        }
    }

    /** It runs while anybody holds it … */
    synchronized void hold(Object holder)
    {
        holders.add(holder);
        markDropped(false);
        start();
        notifyAll();
    }

    private void start()
    {
        if (thread != null)
            return;
        thread = new Thread(this::run, "marquetry " + inbox);
        thread.setDaemon(true);
        thread.setPriority(Thread.MIN_PRIORITY);
        thread.start();
    }

    /** … and until what was flushed before is converted, also after the node is restarted. */
    synchronized void release(Object holder)
    {
        holders.remove(holder);
        if (holders.isEmpty())
            markDropped(true);
        notifyAll();
    }

    private void markDropped(boolean isDropped)
    {
        Path mark = group.resolve(DROPPED);
        try
        {
            if (!isDropped)
                Files.deleteIfExists(mark);
            else if (Files.isDirectory(group))
                Files.write(mark, new byte[0]);
        }
        catch (IOException error)
        {
            logger.warn("{}: what waits may stay until an index uses it again: {}", mark, error.toString());
        }
    }

    private synchronized boolean isHeld()
    {
        return !holders.isEmpty();
    }

    private void run()
    {
        long pause = PAUSE_MS;
        while (true)
        {
            long before = converted.get();
            boolean isDone = false;
            try
            {
                isDone = runOnce();
            }
            catch (InterruptedException ended)
            {
                return;
            }
            catch (IOException error)
            {
                if (said.isNew(error.toString()))
                    logger.error("Flushes do not become Parquet files: {} cannot be run (-D{} names it). They wait in {}; it is tried again, and not logged again until it succeeds: {}",
                                 Settings.command(inbox.root, inbox.work, destination).get(0), Settings.COMMAND_PROPERTY, inbox, error.toString());
            }
            catch (Throwable error)
            {
                if (said.isNew(error.toString()))
                    logger.error("Flushes in {} do not become Parquet files; it is tried again", inbox, error);
            }
            if (converted.get() > before)
                pause = PAUSE_MS;
            synchronized (this)
            {
                if (!isHeld() && (isDone || inbox.isEmpty()))
                {
                    thread = null;
                    releaseFailed();
                    return;
                }
                restarts.incrementAndGet();
                try
                {
                    wait(pause);
                }
                catch (InterruptedException ended)
                {
                    return;
                }
            }
            pause = Math.min(pause * 2, PAUSE_MS_MAX);
        }
    }

    /** The indexes are dropped, so nobody will try again what could not be converted. */
    private void releaseFailed()
    {
        try
        {
            int released = inbox.releaseFailed();
            if (released > 0)
                logger.warn("{}: {} SSTables that could not be converted are released, because no index needs them", inbox, released);
        }
        catch (IOException | RuntimeException error)
        {
            logger.warn("{}: links to what could not be converted cannot be removed: {}", inbox, error.toString());
        }
    }

    /** What cannot be converted keeps no more on the disk than may wait, however long the command runs. */
    private void releaseOldest()
    {
        try
        {
            sayReleased(inbox.releaseOldest());
        }
        catch (IOException | RuntimeException error)
        {
            logger.warn("{}: links to what could not be converted cannot be removed: {}", inbox, error.toString());
        }
    }

    private void sayReleased(int released)
    {
        if (released > 0)
            logger.warn("{}: the {} oldest SSTables that could not be converted are released, because they kept too much room (-D{})", inbox, released,
                        Settings.WAITING_MIB_PROPERTY);
    }

    /** Runs the command until it ends, or is not needed any more: whether the latter. */
    private boolean runOnce() throws IOException, InterruptedException
    {
        inbox.create();
        sayReleased(inbox.sweep());
        if (!isHeld() && inbox.isEmpty())
            return true;
        Process process = new ProcessBuilder(Settings.command(inbox.root, inbox.work, destination)).start();
        try
        {
            Thread out = reader(process.getInputStream(), this::event);
            Thread err = reader(process.getErrorStream(), this::complaint);
            while (!process.waitFor(LOOK_MS, TimeUnit.MILLISECONDS))
            {
                if (isHeld() || !inbox.isEmpty())
                    continue;
                // Its last file is complete: links are removed after that.
                process.getOutputStream().close();
                process.waitFor(PAUSE_MS_MAX, TimeUnit.MILLISECONDS);
                return true;
            }
            out.join();
            err.join();
            String ended = "`marquetry watch` ended with exit code " + process.exitValue();
            if (said.isNew(ended))
                logger.error("{}: {}; it is started again, and that is not logged again until it converts", inbox, ended);
            return false;
        }
        finally
        {
            process.destroy();
        }
    }

    private interface Line
    {
        void take(String line);
    }

    private static Thread reader(InputStream from, Line line)
    {
        Thread thread = new Thread(() -> {
            try (BufferedReader lines = new BufferedReader(new InputStreamReader(from, StandardCharsets.UTF_8)))
            {
                for (String text = lines.readLine(); text != null; text = lines.readLine())
                    line.take(text);
            }
            catch (IOException ended)
            {
                logger.debug("the converter's output ended", ended);
            }
        }, "marquetry output");
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private void event(String line)
    {
        Matcher event = EVENT.matcher(line);
        if (!event.find())
            return;
        switch (event.group(1))
        {
            case "converted":
                converted.incrementAndGet();
                said.clear();
                break;
            case "failed":
                failed.incrementAndGet();
                if (said.isNew(texts(line)))
                    logger.error("{}: {}", inbox, texts(line));
                releaseOldest();
                break;
            case "note":
                if (said.isNew(texts(line)))
                    logger.info("{}: {}", inbox, texts(line));
                break;
            default:
                break;
        }
    }

    /** What an event says, for people. */
    private static String texts(String line)
    {
        Map<String, String> found = new HashMap<>();
        for (Matcher matcher = TEXT.matcher(line); matcher.find();)
            found.put(matcher.group(1), matcher.group(2).replace("\\\"", "\"").replace("\\\\", "\\"));
        if (found.containsKey("text"))
            return found.get("text");
        return found.getOrDefault("subject", "?") + ": " + found.getOrDefault("error", "?");
    }

    private void complaint(String line)
    {
        if (said.isNew(line))
            logger.warn("{}: {}", inbox, line);
    }
}
