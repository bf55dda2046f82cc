package com.marquetry.cassandra;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.function.BiFunction;
import java.util.regex.Pattern;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.cql3.Operator;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.ReadCommand;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.WriteContext;
import org.apache.cassandra.db.filter.RowFilter;
import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.db.partitions.PartitionIterator;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.exceptions.InvalidRequestException;
import org.apache.cassandra.index.Index;
import org.apache.cassandra.index.IndexRegistry;
import org.apache.cassandra.index.transactions.IndexTransaction;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.IndexMetadata;
import org.apache.cassandra.service.ClientState;

/**
 * Every flush of a table as a Parquet file.
 *
 * <pre>CREATE CUSTOM INDEX orders_parquet ON shop.orders () USING 'com.marquetry.cassandra.MarquetryIndex';</pre>
 *
 * An index by name only: it indexes nothing, serves no query, and sees no write. The server loads it with the table and
 * drops it with the table, which is all that is needed of an index: {@link Flushes} listens to the table's tracker.
 *
 * <p>One class file serves 4.1 and 5.0. Where their interfaces differ, both forms of a method are here, without
 * {@code @Override}.
 */
public final class MarquetryIndex implements Index
{
    /** A directory below the root of all files: {@code a/b}. */
    static final String TO = "to";

    private static final Pattern DIRECTORY = Pattern.compile("[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*");

    private final IndexMetadata metadata;
    private final Flushes flushes;

    public MarquetryIndex(ColumnFamilyStore table, IndexMetadata metadata)
    {
        this.metadata = metadata;
        String to = metadata.options.getOrDefault(TO, "");
        // Tools that open tables (scrub, and the like) flush nothing.
        flushes = DatabaseDescriptor.isDaemonInitialized() ? new Flushes(table, to) : null;
    }

    /**
     * What {@code WITH OPTIONS} may say. The servers call it by reflection.
     *
     * @return options that are not known
     * @throws ConfigurationException for a value that is none
     */
    public static Map<String, String> validateOptions(Map<String, String> options)
    {
        Map<String, String> unknown = new HashMap<>(options);
        unknown.remove("target");
        String to = unknown.remove(TO);
        if (to != null && !DIRECTORY.matcher(to).matches())
            throw new ConfigurationException("option 'to' is a directory below the one that the node's system property "
                                             + Settings.TO_PROPERTY + " names, such as 'lake/orders', not '" + to + "'");
        return unknown;
    }

    @Override
    public void register(IndexRegistry registry)
    {
        registry.registerIndex(this);
        if (flushes != null)
            flushes.listen();
    }

    @Override
    public IndexMetadata getIndexMetadata()
    {
        return metadata;
    }

    /** Runs when the index is created, and at each start of the node: finds flushes of which the node was killed before it noted them. */
    @Override
    public Callable<?> getInitializationTask()
    {
        return flushes == null ? null : flushes::catchUp;
    }

    @Override
    public Callable<?> getMetadataReloadTask(IndexMetadata changed)
    {
        return null;
    }

    @Override
    public Callable<?> getInvalidateTask()
    {
        return flushes == null ? null : flushes::end;
    }

    @Override
    public Callable<?> getBlockingFlushTask()
    {
        return null;
    }

    /** Files of what was flushed stay. */
    @Override
    public Callable<?> getTruncateTask(long truncatedAt)
    {
        return null;
    }

    /** SSTables that arrive by streams and imports need no build. */
    @Override
    public boolean shouldBuildBlocking()
    {
        return false;
    }

    @Override
    public Optional<ColumnFamilyStore> getBackingTable()
    {
        return Optional.empty();
    }

    /** Columns may be dropped and renamed as without it. */
    @Override
    public boolean dependsOn(ColumnMetadata column)
    {
        return false;
    }

    @Override
    public boolean supportsExpression(ColumnMetadata column, Operator operator)
    {
        return false;
    }

    @Override
    public AbstractType<?> customExpressionValueType()
    {
        return null;
    }

    @Override
    public RowFilter getPostIndexQueryFilter(RowFilter filter)
    {
        return filter;
    }

    @Override
    public long getEstimatedResultRows()
    {
        return Long.MAX_VALUE;
    }

    /** 5.0. */
    public void validate(PartitionUpdate update, ClientState state)
    {
    }

    /** 4.1. */
    public void validate(PartitionUpdate update)
    {
    }

    /** 5.0: no write is looked at. */
    public Indexer indexerFor(DecoratedKey key, RegularAndStaticColumns columns, long now, WriteContext context,
                              IndexTransaction.Type type, Memtable memtable)
    {
        return null;
    }

    /** 4.1. */
    public Indexer indexerFor(DecoratedKey key, RegularAndStaticColumns columns, int now, WriteContext context,
                              IndexTransaction.Type type)
    {
        return null;
    }

    /** 4.1. */
    public BiFunction<PartitionIterator, ReadCommand, PartitionIterator> postProcessorFor(ReadCommand command)
    {
        return (rows, same) -> rows;
    }

    @Override
    public Searcher searcherFor(ReadCommand command)
    {
        throw new InvalidRequestException("index " + metadata.name + " writes Parquet files and serves no queries");
    }
}
