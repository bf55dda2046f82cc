package com.marquetry.cassandra;

import java.io.IOException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.apache.cassandra.config.DatabaseDescriptor;

/**
 * What whoever runs the node decides, by system properties ({@code -Dmarquetry.…} in {@code jvm-server.options}).
 *
 * <p>Which program is run, and below which directory files are written, is not for those who may create an index.
 */
final class Settings
{
    static final String COMMAND_PROPERTY = "marquetry.command";
    static final String TO_PROPERTY = "marquetry.to";
    static final String OPTIONS_PROPERTY = "marquetry.options";
    static final String WAITING_PROPERTY = "marquetry.waiting";
    static final String WAITING_MIB_PROPERTY = "marquetry.waiting_mib";

    /** SSTables that wait: a directory of so many is listed in milliseconds. */
    private static final int WAITING = 1_000;
    /** What they may keep on the disk after compactions deleted them. */
    private static final int WAITING_MIB = 10_240;

    private Settings()
    {
    }

    /** The data directories of the node. */
    static List<Path> dataDirectories()
    {
        List<Path> all = new ArrayList<>();
        for (String location : DatabaseDescriptor.getAllDataFileLocations())
            all.add(real(Paths.get(location)));
        return all;
    }

    /** A path without symbolic links, so that a directory has one name. */
    static Path real(Path path)
    {
        try
        {
            return path.toRealPath();
        }
        catch (IOException missing)
        {
            return path.toAbsolutePath().normalize();
        }
    }

    /** Where files of a data directory go, for an option {@code to}. */
    static String destination(Path data, String to)
    {
        List<Path> all = dataDirectories();
        String root = System.getProperty(TO_PROPERTY, "");
        if (root.isEmpty())
            root = all.get(0).resolveSibling("parquet").toString();
        StringBuilder destination = new StringBuilder(root);
        if (!to.isEmpty())
            destination.append('/').append(to);
        // A destination has one writer, and each data directory has its own: links do not cross file systems.
        if (all.size() > 1)
            destination.append("/data").append(all.indexOf(data) + 1);
        return destination.toString();
    }

    /** The command that watches an inbox. */
    static List<String> command(Path inbox, Path work, String destination)
    {
        String program = System.getProperty(COMMAND_PROPERTY, "marquetry");
        List<String> options = new ArrayList<>(Arrays.asList(System.getProperty(OPTIONS_PROPERTY, "").trim().split("\\s+")));
        options.removeIf(String::isEmpty);
        List<String> command = new ArrayList<>(List.of(program, "watch", inbox.toString(), "--to", destination, "--work",
                                                       work.toString(), "--inbox", "--until-eof", "--json"));
        // A tenth of a small server's memory and one of its processors, unless somebody says more.
        addUnless(command, options, "--memory", "128M");
        addUnless(command, options, "--threads", "1");
        command.addAll(options);
        return command;
    }

    private static void addUnless(List<String> command, List<String> options, String name, String value)
    {
        if (options.stream().noneMatch(option -> option.equals(name) || option.startsWith(name + "=")))
        {
            command.add(name);
            command.add(value);
        }
    }

    static int waiting()
    {
        return Integer.getInteger(WAITING_PROPERTY, WAITING);
    }

    static long waitingBytes()
    {
        return (long) Integer.getInteger(WAITING_MIB_PROPERTY, WAITING_MIB) << 20;
    }
}
