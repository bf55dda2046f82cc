import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.avro.AvroParquetWriter;
import org.apache.parquet.avro.AvroSchemaConverter;
import org.apache.parquet.column.ParquetProperties.WriterVersion;
import org.apache.parquet.crypto.ColumnEncryptionProperties;
import org.apache.parquet.crypto.FileEncryptionProperties;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.parquet.hadoop.ParquetFileWriter.Mode;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.metadata.ColumnPath;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.proto.ProtoParquetWriter;
import org.apache.parquet.proto.ProtoWriteSupport;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.MessageTypeParser;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;
import com.google.protobuf.DescriptorProtos;
import com.google.protobuf.Message;

/**
 * Writes files with parquet-java into the folder named by the first argument. Seeded: the same values every time.
 *
 * <p>Where other readers lack a codec or a type, the values are also written as plainly as can be, into twins/; twins.txt says
 * which file has which twin.
 */
public final class Files {
  private static final int ROWS = 60;

  private static final MessageType FLAT = MessageTypeParser.parseMessageType(
      """
      message flat {
        required boolean b;            optional boolean bo;
        required int32 i;              optional int32 io;
        required int64 l;              optional int64 lo;
        required float f;              optional float fo;
        required double d;             optional double do_;
        required int96 ts96;           optional int96 ts96o;
        required binary bin;           optional binary bino;
        required fixed_len_byte_array(5) fix; optional fixed_len_byte_array(5) fixo;
        optional int32 i8 (INTEGER(8,true));    optional int32 i16 (INTEGER(16,true));
        optional int32 u8 (INTEGER(8,false));   optional int32 u16 (INTEGER(16,false));
        optional int32 u32 (INTEGER(32,false)); optional int64 u64 (INTEGER(64,false));
        optional int32 date (DATE);
        optional int32 time_ms (TIME(MILLIS,true));
        optional int64 time_us (TIME(MICROS,false));
        optional int64 time_ns (TIME(NANOS,true));
        optional int64 ts_ms (TIMESTAMP(MILLIS,true));
        optional int64 ts_us (TIMESTAMP(MICROS,false));
        optional int64 ts_ns (TIMESTAMP(NANOS,true));
        optional int32 dec32 (DECIMAL(7,2));
        optional int64 dec64 (DECIMAL(15,4));
        optional fixed_len_byte_array(9) dec_fix (DECIMAL(20,3));
        optional binary dec_bin (DECIMAL(30,0));
        optional binary str (STRING);  optional binary en (ENUM);
        optional binary json (JSON);   optional binary bson (BSON);
        optional fixed_len_byte_array(16) uuid (UUID);
        optional fixed_len_byte_array(2) f16 (FLOAT16);
        optional fixed_len_byte_array(12) iv (INTERVAL);
        optional int32 only_nulls;
      }
      """);

  private static final MessageType NESTED = MessageTypeParser.parseMessageType(
      """
      message nested {
        repeated int32 bare;
        repeated group bare_group { required int32 a; optional binary b (STRING); repeated int64 c; }
        optional group s { optional group t { optional group u { optional int32 v; required binary w (STRING); } } }
        optional group list3 (LIST) { repeated group list { optional int32 element; } }
        required group list_required (LIST) { repeated group list { required binary element (STRING); } }
        optional group list2 (LIST) { repeated int32 array; }
        optional group list_array (LIST) { repeated group array { optional int32 x; } }
        optional group list_tuple (LIST) { repeated group list_tuple_tuple { optional binary str (STRING); } }
        optional group list_bag (LIST) { repeated group bag { optional double array_element; } }
        optional group list_structs (LIST) { repeated group element { required binary str (STRING); optional int32 num; } }
        optional group list_list (LIST) { repeated group list { optional group element (LIST) { repeated group list {
          optional group element (LIST) { repeated group list { optional int32 element; } } } } } }
        optional group map (MAP) { repeated group key_value { required binary key (STRING); optional int32 value; } }
        optional group map_legacy (MAP_KEY_VALUE) { repeated group map { required int32 key; optional binary value (STRING); } }
        optional group map_entries (MAP) { repeated group map (MAP_KEY_VALUE) { required int32 key; required int64 value; } }
        optional group map_of (MAP) { repeated group key_value { required int64 key; optional group value (MAP) {
          repeated group key_value { required binary key (STRING); optional group value (LIST) {
            repeated group list { optional double element; } } } } } }
        required group r { repeated group q { repeated group p { required int32 o; } optional int32 n; } }
      }
      """);

  private final String folder;
  private final Configuration conf = new Configuration();
  private final Map<String, String> twins = new TreeMap<>();

  private Files(String folder) {
    this.folder = folder;
    // Hadoop writes a .crc beside each local file otherwise.
    conf.set("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem");
  }

  public static void main(String[] arguments) throws Exception {
    Files files = new Files(arguments[0]);
    files.codecs();
    files.encodings();
    files.shapes();
    files.avro();
    files.protobuf();
    files.variant();
    files.geometry();
    files.encrypted();
    try (java.io.PrintWriter out = new java.io.PrintWriter(arguments[0] + "/twins.txt")) {
      files.twins.forEach((name, twin) -> out.println(name + ".parquet " + twin + ".parquet"));
    }
  }

  /** Every codec over flat and nested columns, by pages of both versions; and one of several blocks a page. */
  private void codecs() throws IOException {
    for (CompressionCodecName codec : CompressionCodecName.values()) {
      String name = codec.name().toLowerCase();
      groups("flat_v1_" + name, FLAT, ROWS, writer -> writer.withCompressionCodec(codec));
      groups("flat_v2_" + name, FLAT, ROWS,
          writer -> writer.withCompressionCodec(codec).withWriterVersion(WriterVersion.PARQUET_2_0));
      groups("nested_v1_" + name, NESTED, 40, writer -> writer.withCompressionCodec(codec));
      groups("nested_v2_" + name, NESTED, 40,
          writer -> writer.withCompressionCodec(codec).withWriterVersion(WriterVersion.PARQUET_2_0));
      // Longer than the buffers of Hadoop's codecs (64 and 256 KiB), so a page is several blocks; runs compress well.
      longRuns("long_page_" + name, codec);
      twins.put("long_page_" + name, "long_page_uncompressed");
    }
    groups("codec_a_column", FLAT, ROWS, writer -> writer
        .withCompressionCodec(CompressionCodecName.SNAPPY)
        .withCompressionCodec("str", CompressionCodecName.LZO)
        .withCompressionCodec("l", CompressionCodecName.LZ4)
        .withCompressionCodec("d", CompressionCodecName.UNCOMPRESSED)
        .withCompressionCodec("fix", CompressionCodecName.BROTLI)
        .withCompressionCodec("io", CompressionCodecName.GZIP));
  }

  private void encodings() throws IOException {
    groups("plain", FLAT, ROWS, writer -> writer.withDictionaryEncoding(false));
    groups("delta", FLAT, 700,
        writer -> writer.withDictionaryEncoding(false).withWriterVersion(WriterVersion.PARQUET_2_0)
            .withCompressionCodec(CompressionCodecName.ZSTD));
    groups("split", FLAT, ROWS, writer -> writer.withDictionaryEncoding(false).withByteStreamSplitEncoding(true));
    groups("split_some", FLAT, ROWS, writer -> writer.withDictionaryEncoding(false)
        .withByteStreamSplitEncoding("l", true).withByteStreamSplitEncoding("fix", true)
        .withWriterVersion(WriterVersion.PARQUET_2_0));
    groups("fallback", FLAT, 400, writer -> writer.withDictionaryPageSize(200).withPageSize(300)
        .withMinRowCountForPageSizeCheck(5).withCompressionCodec(CompressionCodecName.ZSTD));
    groups("fallback_v2", FLAT, 400, writer -> writer.withDictionaryPageSize(200).withPageSize(300)
        .withMinRowCountForPageSizeCheck(5).withWriterVersion(WriterVersion.PARQUET_2_0)
        .withCompressionCodec(CompressionCodecName.ZSTD));
  }

  private void shapes() throws IOException {
    for (MessageType schema : List.of(FLAT, NESTED)) {
      String name = schema.getName();
      groups(name + "_no_rows", schema, 0, writer -> writer);
      groups(name + "_one_row", schema, 1, writer -> writer);
      groups(name + "_small_pages", schema, 100, writer -> writer.withPageRowCountLimit(7)
          .withCompressionCodec(CompressionCodecName.ZSTD));
      groups(name + "_small_pages_v2", schema, 100, writer -> writer.withPageRowCountLimit(1)
          .withWriterVersion(WriterVersion.PARQUET_2_0));
      groups(name + "_row_groups", schema, 40, writer -> writer.withRowGroupRowCountLimit(9)
          .withPageWriteChecksumEnabled(true));
      groups(name + "_no_statistics", schema, ROWS, writer -> writer.withStatisticsEnabled(false)
          .withSizeStatisticsEnabled(false).withPageWriteChecksumEnabled(false));
      groups(name + "_bloom", schema, ROWS, writer -> writer.withBloomFilterEnabled(true).withMaxBloomFilterBytes(64)
          .withStatisticsTruncateLength(3).withColumnIndexTruncateLength(2).withPageRowCountLimit(20));
    }
    groups("padded", FLAT, 300, writer -> writer.withRowGroupSize(4000L).withMaxPaddingSize(3000)
        .withMinRowCountForPageSizeCheck(10).withExtraMetaData(Map.of("key", "value", "empty", "")));
    StringBuilder wide = new StringBuilder("message wide {\n");
    for (int column = 0; column < 60; column++) {
      wide.append(column % 3 == 0 ? "repeated" : "optional").append(" int32 c").append(column).append(";\n");
    }
    groups("wide", MessageTypeParser.parseMessageType(wide + "}"), 5, writer -> writer);
    StringBuilder deep = new StringBuilder("message deep {\n");
    for (int level = 0; level < 40; level++) {
      deep.append(level % 2 == 0 ? "optional" : "repeated").append(" group g").append(level).append(" {\n");
    }
    groups("deep", MessageTypeParser.parseMessageType(deep + "optional int32 leaf;" + "}".repeat(41)), 20, w -> w);
    MessageType ids = MessageTypeParser.parseMessageType(
        "message ids { optional int32 a = 7; optional group l (LIST) = 8 { repeated group list = 9 { "
            + "optional binary element (STRING) = -1; } } optional binary dotted.name (STRING) = 0; }");
    groups("field_ids", ids, ROWS, writer -> writer);
  }

  // --- values

  private void groups(String name, MessageType schema, int rows, UnaryOperator<ExampleParquetWriter.Builder> options)
      throws IOException {
    if (schema == FLAT || schema == NESTED) {
      String twin = "twins/" + schema.getName() + "_" + rows;
      if (!twins.containsValue(twin)) {
        // parquet-java writes INTERVAL with the logical type UNKNOWN, which pyarrow reads as nulls.
        String plain = schema.toString().replace("(INTERVAL)", "");
        write(twin, MessageTypeParser.parseMessageType(plain), rows, writer -> writer.withDictionaryEncoding(false)
            .withPageRowCountLimit(1_000_000).withPageSize(1 << 24));
      }
      twins.put(name, twin);
    }
    write(name, schema, rows, options);
  }

  private void write(String name, MessageType schema, int rows, UnaryOperator<ExampleParquetWriter.Builder> options)
      throws IOException {
    Random random = new Random(schema.getName().hashCode());
    ExampleParquetWriter.Builder builder =
        options.apply(ExampleParquetWriter.builder(out(name)).withType(schema).withConf(conf).withWriteMode(Mode.OVERWRITE));
    try (ParquetWriter<Group> writer = builder.build()) {
      for (int row = 0; row < rows; row++) {
        writer.write(group(schema, random, 0));
      }
    }
  }

  private HadoopOutputFile out(String name) throws IOException {
    return HadoopOutputFile.fromPath(new Path(folder, name + ".parquet"), conf);
  }

  private static Group group(GroupType schema, Random random, int depth) {
    Group group = new SimpleGroup(schema);
    for (Type field : schema.getFields()) {
      int count = 1;
      if (field.isRepetition(Type.Repetition.OPTIONAL)) {
        count = field.getName().equals("only_nulls") || random.nextInt(4) == 0 ? 0 : 1;
      } else if (field.isRepetition(Type.Repetition.REPEATED)) {
        count = depth > 3 ? random.nextInt(2) : random.nextInt(4);
      }
      boolean isMap = schema.getLogicalTypeAnnotation() instanceof LogicalTypeAnnotation.MapLogicalTypeAnnotation
          || schema.getLogicalTypeAnnotation() instanceof LogicalTypeAnnotation.MapKeyValueTypeAnnotation;
      for (int at = 0; at < count; at++) {
        if (field.isPrimitive()) {
          add(group, field.getName(), field.asPrimitiveType(), random);
        } else {
          group.add(field.getName(), isMap ? entry(field.asGroupType(), random, at, depth)
              : group(field.asGroupType(), random, depth + 1));
        }
      }
    }
    return group;
  }

  /** An entry of a map, whose keys are different ones. */
  private static Group entry(GroupType schema, Random random, int at, int depth) {
    Group entry = group(schema, random, depth + 1);
    Group other = new SimpleGroup(schema);
    switch (schema.getType(0).asPrimitiveType().getPrimitiveTypeName()) {
      case INT32 -> other.add(0, at * 10 - 7);
      case INT64 -> other.add(0, at * 1000L - 7);
      default -> other.add(0, Binary.fromString("key " + at));
    }
    if (entry.getFieldRepetitionCount(1) > 0) {
      if (schema.getType(1).isPrimitive()) {
        switch (schema.getType(1).asPrimitiveType().getPrimitiveTypeName()) {
          case INT32 -> other.add(1, entry.getInteger(1, 0));
          case INT64 -> other.add(1, entry.getLong(1, 0));
          default -> other.add(1, entry.getBinary(1, 0));
        }
      } else {
        other.add(1, entry.getGroup(1, 0));
      }
    }
    return other;
  }

  private static void add(Group group, String name, PrimitiveType type, Random random) {
    boolean few = random.nextInt(3) > 0; // some values come again and again, so that dictionaries are worth it
    LogicalTypeAnnotation logical = type.getLogicalTypeAnnotation();
    String kind = logical == null ? "" : logical.toString();
    switch (type.getPrimitiveTypeName()) {
      case BOOLEAN -> group.add(name, random.nextBoolean());
      case INT32 -> group.add(name, int32(kind, few, random));
      case INT64 -> group.add(name, int64(kind, few, random));
      case FLOAT -> group.add(name, few ? random.nextInt(3) - 1.5f
          : new float[] {Float.NaN, -0.0f, Float.POSITIVE_INFINITY, Float.MIN_VALUE, random.nextFloat()}[random.nextInt(5)]);
      case DOUBLE -> group.add(name, few ? random.nextInt(3) - 1.5
          : new double[] {Double.NaN, -0.0, Double.NEGATIVE_INFINITY, Double.MIN_VALUE, random.nextGaussian()}[random.nextInt(5)]);
      case INT96 -> group.add(name, int96(random));
      case FIXED_LEN_BYTE_ARRAY -> group.add(name, Binary.fromConstantByteArray(fixed(kind, type.getTypeLength(), few, random)));
      case BINARY -> group.add(name, binary(kind, few, random));
    }
  }

  private static int int32(String kind, boolean few, Random random) {
    if (few) {
      return random.nextInt(5);
    }
    return switch (kind) {
      case "INTEGER(8,true)" -> random.nextInt(256) - 128;
      case "INTEGER(16,true)" -> random.nextInt(65536) - 32768;
      case "INTEGER(8,false)" -> random.nextInt(256);
      case "INTEGER(16,false)" -> random.nextInt(65536);
      case "DATE" -> random.nextInt(60000) - 30000;
      case "TIME(MILLIS,true)" -> random.nextInt(86_400_000);
      case "DECIMAL(7,2)" -> random.nextInt(19_999_999) - 9_999_999;
      default -> random.nextInt();
    };
  }

  private static long int64(String kind, boolean few, Random random) {
    if (few) {
      return random.nextInt(5) * 1_000_000_000L;
    }
    return switch (kind) {
      case "TIME(MICROS,false)" -> random.nextLong(86_400_000_000L);
      case "TIME(NANOS,true)" -> random.nextLong(86_400_000_000_000L);
      case "TIMESTAMP(MILLIS,true)" -> random.nextLong(-5_000_000_000_000L, 5_000_000_000_000L);
      case "TIMESTAMP(MICROS,false)" -> random.nextLong(-5_000_000_000_000_000L, 5_000_000_000_000_000L);
      case "DECIMAL(15,4)" -> random.nextLong(-999_999_999_999_999L, 999_999_999_999_999L);
      default -> random.nextLong();
    };
  }

  private static Binary int96(Random random) {
    byte[] bytes = new byte[12];
    long nanos = random.nextLong(86_400_000_000_000L);
    int day = 2_440_588 + random.nextInt(40_000) - 10_000;
    for (int at = 0; at < 8; at++) {
      bytes[at] = (byte) (nanos >>> (8 * at));
    }
    for (int at = 0; at < 4; at++) {
      bytes[8 + at] = (byte) (day >>> (8 * at));
    }
    return Binary.fromConstantByteArray(bytes);
  }

  private static byte[] fixed(String kind, int length, boolean few, Random random) {
    byte[] bytes = new byte[length];
    if (kind.startsWith("DECIMAL")) {
      byte[] number = java.math.BigInteger.valueOf(few ? random.nextInt(9) - 4 : random.nextLong()).toByteArray();
      java.util.Arrays.fill(bytes, (byte) (number[0] < 0 ? -1 : 0));
      System.arraycopy(number, 0, bytes, length - number.length, number.length);
    } else if (few) {
      java.util.Arrays.fill(bytes, (byte) random.nextInt(3));
    } else {
      random.nextBytes(bytes);
    }
    return bytes;
  }

  private static Binary binary(String kind, boolean few, Random random) {
    if (kind.startsWith("DECIMAL")) {
      return Binary.fromConstantByteArray(new java.math.BigInteger(few ? 8 : 90, random).negate().toByteArray());
    }
    String text = few ? List.of("", "a", "Grüße", "twelve bytes", "thirteen bytes").get(random.nextInt(5))
        : "text no. " + random.nextInt(100_000) + " ☃".repeat(random.nextInt(5));
    return switch (kind) {
      case "JSON" -> Binary.fromString("{\"a\": \"" + text + "\"}");
      case "BSON" -> Binary.fromConstantByteArray(new byte[] {12, 0, 0, 0, 16, 'a', 0, (byte) random.nextInt(99), 0, 0, 0, 0});
      case "" -> {
        byte[] bytes = new byte[random.nextInt(20)];
        random.nextBytes(bytes);
        yield Binary.fromConstantByteArray(bytes);
      }
      default -> Binary.fromString(text);
    };
  }

  private void longRuns(String name, CompressionCodecName codec) throws IOException {
    MessageType schema = MessageTypeParser.parseMessageType(
        "message long_page { required int64 l; optional binary s (STRING); repeated int32 r; }");
    ExampleParquetWriter.Builder builder = ExampleParquetWriter.builder(out(name)).withType(schema).withConf(conf)
        .withWriteMode(Mode.OVERWRITE).withCompressionCodec(codec)
        .withDictionaryEncoding(false).withPageRowCountLimit(1_000_000).withPageSize(1 << 24);
    try (ParquetWriter<Group> writer = builder.build()) {
      for (int row = 0; row < 40_000; row++) {
        Group group = new SimpleGroup(schema);
        group.add("l", (long) (row / 9_000));
        if (row % 1_000 != 0) {
          group.add("s", "the same text, again and again " + row / 20_000);
        }
        group.add("r", row / 10_000);
        group.add("r", 7);
        writer.write(group);
      }
    }
  }

  // --- Avro

  private static final String RECORD =
      """
      {"type": "record", "name": "r", "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "kind", "type": {"type": "enum", "name": "k", "symbols": ["ONE", "TWO"]}},
        {"name": "choice", "type": ["null", "int", "string"]},
        {"name": "fixed", "type": {"type": "fixed", "name": "f", "size": 4}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "points", "type": ["null", {"type": "array", "items":
          {"type": "record", "name": "p", "fields": [{"name": "x", "type": "double"}, {"name": "y", "type": ["null", "double"]}]}}]},
        {"name": "ones", "type": {"type": "array", "items":
          {"type": "record", "name": "o", "fields": [{"name": "only", "type": "int"}]}}},
        {"name": "grid", "type": {"type": "array", "items": {"type": "array", "items": "int"}}},
        {"name": "props", "type": ["null", {"type": "map", "values": "long"}]},
        {"name": "maps", "type": {"type": "map", "values": {"type": "array", "items": "string"}}}
        %s
      ]}
      """;
  private static final String SPARSE =
      ", {\"name\": \"sparse\", \"type\": {\"type\": \"array\", \"items\": [\"null\", \"int\"]}}";

  private void avro() throws IOException {
    avro("avro_two_level_lists", true, new Schema.Parser().parse(RECORD.formatted("")));
    avro("avro_three_level_lists", false, new Schema.Parser().parse(RECORD.formatted(SPARSE)));
  }

  private void avro(String name, boolean twoLevel, Schema schema) throws IOException {
    Random random = new Random(3);
    Configuration conf = new Configuration(this.conf);
    conf.setBoolean("parquet.avro.write-old-list-structure", twoLevel);
    try (ParquetWriter<GenericRecord> writer = AvroParquetWriter.<GenericRecord>builder(out(name)).withSchema(schema)
        .withConf(conf).withWriteMode(Mode.OVERWRITE).withCompressionCodec(CompressionCodecName.SNAPPY).build()) {
      for (int row = 0; row < ROWS; row++) {
        writer.write((GenericRecord) value(schema, random));
      }
    }
  }

  private static Object value(Schema schema, Random random) {
    return switch (schema.getType()) {
      case RECORD -> {
        GenericRecord record = new GenericData.Record(schema);
        for (Schema.Field field : schema.getFields()) {
          record.put(field.name(), value(field.schema(), random));
        }
        yield record;
      }
      case UNION -> value(schema.getTypes().get(random.nextInt(schema.getTypes().size())), random);
      case ARRAY -> {
        List<Object> list = new ArrayList<>();
        for (int at = random.nextInt(4); at > 0; at--) {
          list.add(value(schema.getElementType(), random));
        }
        yield list;
      }
      case MAP -> {
        Map<String, Object> map = new java.util.TreeMap<>();
        for (int at = random.nextInt(4); at > 0; at--) {
          map.put("k" + at, value(schema.getValueType(), random));
        }
        yield map;
      }
      case ENUM -> new GenericData.EnumSymbol(schema, schema.getEnumSymbols().get(random.nextInt(2)));
      case FIXED -> new GenericData.Fixed(schema, new byte[] {1, 2, (byte) random.nextInt(9), 4});
      case STRING -> "s" + random.nextInt(20);
      case INT -> random.nextInt(1000);
      case LONG -> random.nextLong(1L << 50);
      case DOUBLE -> random.nextGaussian();
      case NULL -> null;
      default -> throw new IllegalArgumentException(schema.toString());
    };
  }

  // --- Protocol Buffers: their own descriptors are the data, for they need no compiler

  private void protobuf() throws IOException {
    List<Message> files = new ArrayList<>();
    files.add(DescriptorProtos.FileDescriptorProto.getDescriptor().getFile().toProto());
    files.add(com.google.protobuf.TimestampProto.getDescriptor().toProto());
    files.add(com.google.protobuf.StructProto.getDescriptor().toProto());
    List<Message> enums = new ArrayList<>();
    for (var kind : DescriptorProtos.FileDescriptorProto.getDescriptor().getFile().getMessageTypes()) {
      kind.getEnumTypes().forEach(found -> enums.add(found.toProto()));
    }
    List<Message> structs = new ArrayList<>();
    for (int row = 0; row < 5; row++) {
      com.google.protobuf.Struct.Builder struct = com.google.protobuf.Struct.newBuilder();
      for (int at = 0; at < row; at++) {
        struct.putFields("k" + at, com.google.protobuf.Value.newBuilder().setNumberValue(at).build());
      }
      structs.add(struct.build());
    }
    for (boolean compliant : new boolean[] {false, true}) {
      String end = compliant ? "_compliant" : "_repeated";
      proto("proto_enum" + end, DescriptorProtos.EnumDescriptorProto.class, enums, compliant, 5);
      proto("proto_struct" + end, com.google.protobuf.Struct.class, structs, compliant, 1);
      proto("proto_file" + end, DescriptorProtos.DescriptorProto.class,
          new ArrayList<>(DescriptorProtos.FileDescriptorProto.getDescriptor().getFile().toProto().getMessageTypeList()),
          compliant, 3);
    }
  }

  private void proto(String name, Class<? extends Message> kind, List<Message> messages, boolean compliant, int recursion)
      throws IOException {
    Configuration conf = new Configuration(this.conf);
    ProtoWriteSupport.setWriteSpecsCompliant(conf, compliant);
    conf.setInt("parquet.proto.maxRecursion", recursion);
    try (ParquetWriter<Message> writer = ProtoParquetWriter.<Message>builder(out(name)).withMessage(kind).withConf(conf)
        .withWriteMode(Mode.OVERWRITE).withCompressionCodec(CompressionCodecName.ZSTD).build()) {
      for (Message message : messages) {
        writer.write(message);
      }
    }
  }

  // --- VARIANT and GEOMETRY

  private void variant() throws IOException {
    MessageType schema = MessageTypeParser.parseMessageType(
        "message variant { required int32 id; optional group v (VARIANT(1)) { required binary metadata; required binary value; } }");
    ExampleParquetWriter.Builder builder =
        ExampleParquetWriter.builder(out("variant")).withType(schema).withConf(conf).withWriteMode(Mode.OVERWRITE);
    try (ParquetWriter<Group> writer = builder.build()) {
      for (int row = 0; row < 12; row++) {
        Group group = new SimpleGroup(schema);
        group.add("id", row);
        if (row % 5 != 4) {
          var variant = new org.apache.parquet.variant.VariantBuilder();
          var object = variant.startObject();
          object.appendKey("row");
          object.appendInt(row);
          object.appendKey("text");
          object.appendString("x".repeat(row * 10));
          object.appendKey("list");
          var array = object.startArray();
          array.appendDecimal(new java.math.BigDecimal("12.50"));
          array.appendBoolean(row % 2 == 0);
          array.appendDate(row);
          array.appendTimestampTz(row * 1_000_000L);
          array.appendUUID(new java.util.UUID(1, row));
          object.endArray();
          variant.endObject();
          var built = variant.build();
          Group value = group.addGroup("v");
          value.add("metadata", Binary.fromConstantByteBuffer(built.getMetadataBuffer()));
          value.add("value", Binary.fromConstantByteBuffer(built.getValueBuffer()));
        }
        writer.write(group);
      }
    }
  }

  private void geometry() throws IOException {
    MessageType schema = new MessageType("geometry",
        org.apache.parquet.schema.Types.optional(PrimitiveType.PrimitiveTypeName.BINARY)
            .as(LogicalTypeAnnotation.geometryType("EPSG:4326")).named("g"),
        org.apache.parquet.schema.Types.optional(PrimitiveType.PrimitiveTypeName.BINARY)
            .as(LogicalTypeAnnotation.geographyType(null, null)).named("e"));
    ExampleParquetWriter.Builder builder =
        ExampleParquetWriter.builder(out("geometry")).withType(schema).withConf(conf).withWriteMode(Mode.OVERWRITE);
    try (ParquetWriter<Group> writer = builder.build()) {
      for (int row = 0; row < 10; row++) {
        Group group = new SimpleGroup(schema);
        java.nio.ByteBuffer point = java.nio.ByteBuffer.allocate(21).order(java.nio.ByteOrder.LITTLE_ENDIAN);
        point.put((byte) 1).putInt(1).putDouble(row * 10).putDouble(-row);
        if (row % 4 != 3) {
          group.add("g", Binary.fromConstantByteArray(point.array()));
        }
        group.add("e", Binary.fromConstantByteArray(point.array()));
        writer.write(group);
      }
    }
  }

  // --- encrypted

  private void encrypted() throws IOException {
    byte[] key = "0123456789012345".getBytes();
    MessageType schema = MessageTypeParser.parseMessageType("message e { required int32 i; optional binary s (STRING); }");
    groups("encrypted_footer", schema, ROWS,
        writer -> writer.withEncryption(FileEncryptionProperties.builder(key).build()));
    groups("encrypted_columns", schema, ROWS, writer -> writer.withEncryption(FileEncryptionProperties.builder(key)
        .withPlaintextFooter()
        .withEncryptedColumns(Map.of(ColumnPath.get("i"), ColumnEncryptionProperties.builder("i").withKey(key).build()))
        .build()));
  }
}
