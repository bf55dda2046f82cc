package com.marquetry.cassandra;

/** Counters of a table, for JMX: {@code com.marquetry.cassandra:type=MarquetryIndex,keyspace=…,table=…}. Since the node started. */
public interface CountersMBean
{
    /** SSTables that were flushed. */
    long getFlushed();

    /** Those of them that were linked, to be converted. */
    long getLinked();

    /** Those that could not be linked. */
    long getFailed();

    /** Those that were left out because too many wait. */
    long getLeftOut();

    /** The longest that a flush was held up by links, in microseconds. */
    long getSlowestLinkMicros();

    /** SSTables that wait to be converted: of all tables that go to the same destination, as are the following. -1 if unknown. */
    long getWaiting();

    /** SSTables that became Parquet files. */
    long getConverted();

    /** Conversions that failed, whether or not they are tried again. */
    long getNotConverted();

    /** How often the converting process was started again. */
    long getRestarts();
}
