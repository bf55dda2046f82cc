package com.hadoop.compression.lzo;

/** LZO under the name that parquet-java asks Hadoop for; the codec itself is aircompressor's. */
public class LzoCodec extends io.airlift.compress.lzo.LzoCodec {}
