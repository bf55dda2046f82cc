package com.marquetry.cassandra;

import java.lang.management.ManagementFactory;

import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import org.apache.cassandra.schema.TableMetadata;

/** The counters of a table's flushes. */
final class Counters implements CountersMBean
{
    private static final Logger logger = LoggerFactory.getLogger(Counters.class);

    private final Flushes flushes;
    private final ObjectName name;

    private Counters(Flushes flushes, ObjectName name)
    {
        this.flushes = flushes;
        this.name = name;
    }

    /** {@code null} if JMX refuses: the counters are then nowhere, and all else goes on. */
    static Counters register(Flushes flushes, TableMetadata table)
    {
        try
        {
            ObjectName name = new ObjectName(String.format("com.marquetry.cassandra:type=MarquetryIndex,keyspace=%s,table=%s",
                                                           table.keyspace, table.name));
            Counters counters = new Counters(flushes, name);
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            // Of a table that was dropped and created again.
            if (server.isRegistered(name))
                server.unregisterMBean(name);
            server.registerMBean(counters, name);
            return counters;
        }
        catch (JMException | RuntimeException error)
        {
            logger.warn("{}.{}: no counters by JMX", table.keyspace, table.name, error);
            return null;
        }
    }

    static void unregister(Counters counters)
    {
        if (counters == null)
            return;
        try
        {
            ManagementFactory.getPlatformMBeanServer().unregisterMBean(counters.name);
        }
        catch (JMException | RuntimeException error)
        {
            logger.debug("already gone", error);
        }
    }

    @Override
    public long getFlushed()
    {
        return flushes.flushed.get();
    }

    @Override
    public long getLinked()
    {
        return flushes.linked.get();
    }

    @Override
    public long getFailed()
    {
        return flushes.failed.get();
    }

    @Override
    public long getLeftOut()
    {
        return flushes.leftOut.get();
    }

    @Override
    public long getSlowestLinkMicros()
    {
        return flushes.slowestMicros.get();
    }

    @Override
    public long getWaiting()
    {
        return flushes.waiting();
    }

    @Override
    public long getConverted()
    {
        return flushes.converted();
    }

    @Override
    public long getNotConverted()
    {
        return flushes.notConverted();
    }

    @Override
    public long getRestarts()
    {
        return flushes.restarts();
    }
}
