import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.io.sstable.CQLSSTableWriter;
import org.apache.cassandra.utils.ByteBufferUtil;

/**
 * Writes SSTables with Cassandra's own writer, for the benchmarks: one SSTable a table.
 *
 *     dev/cassandra.sh run dev/bench/MakeTables.java DIR TABLE ROWS COMPRESSOR
 *
 * TABLE is one of
 *
 *   pair:RANGE              (int key, int value)
 *   text:LENGTH:DISTINCT    (int key, text value)
 *   wide:COLUMNS:VALUES:RANGE    an int key and so many int columns, of which each row has so many, chosen at random
 *   five                    five columns of several types
 *   mixed                   ten columns of several types
 *   series                  measurements of sensors, a partition each, with a TTL
 *   sparse                  an int key and 197 columns of several types, ten of which a row has
 *   csv:KEY:COLUMN=TYPE,…   rows of standard input, without a header: NULL is nothing
 *
 * RANGE is `100` or `full`: ints from 0 to 99, or all of them. Write times are as of one client that writes 20,000 rows a second in the order
 * of keys; rows lie in the order of tokens.
 *
 * ORDER=sorted or ORDER=unsorted, in the environment, times the writer of `five` and `mixed`, by rows in the order of tokens, or of keys: each row is
 * written a microsecond after the one with the key before it, and what is printed is seconds and CPU seconds of all threads, of the writer with the
 * rows that are made for it, and of making the rows alone.
 */
final class MakeTables {
  static final long START = 1_700_000_000_000_000L;
  static final long ROW_MICROS = 50;
  static final String ORDER = System.getenv("ORDER");

  interface Filler {
    List<Object> row(int key, SplittableRandom random);
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 4) throw new IllegalArgumentException("DIR TABLE ROWS COMPRESSOR");
    File dir = new File(arguments[0]);
    String[] words = arguments[1].split(":", 4);
    int rows = Integer.parseInt(arguments[2]);
    String compressor = arguments[3];
    dir.mkdirs();
    DatabaseDescriptor.toolInitialization();
    switch (words[0]) {
      case "pair":
        write(dir, compressor, rows, List.of("value int"), "", (key, random) -> List.of(number(words[1], random)));
        break;
      case "text": {
        int length = Integer.parseInt(words[1]);
        int distinct = Integer.parseInt(words[2]);
        List<String> texts = new ArrayList<>();
        SplittableRandom letters = new SplittableRandom(7);
        for (int i = 0; i < distinct; i++) texts.add(text(length, letters));
        write(dir, compressor, rows, List.of("value text"), "", (key, random) -> List.of(texts.get(random.nextInt(distinct))));
        break;
      }
      case "wide": {
        int columns = Integer.parseInt(words[1]);
        int values = Integer.parseInt(words[2]);
        List<String> definitions = new ArrayList<>();
        for (int i = 0; i < columns; i++) definitions.add("c" + i + " int");
        write(dir, compressor, rows, definitions, "", (key, random) -> {
          Object[] row = new Object[columns];
          // Each column is among those that are left to choose with the same probability.
          for (int i = 0, left = values; i < columns; i++) {
            if (random.nextInt(columns - i) < left) {
              row[i] = number(words[3], random);
              left--;
            }
          }
          return Arrays.asList(row);
        });
        break;
      }
      case "five":
        write(dir, compressor, rows, List.of("a bigint", "b double", "c text", "d int"), "",
            (key, random) -> Arrays.asList(random.nextLong() >> 20, random.nextInt(100_000) / 8.0, "text of " + random.nextInt(100_000), random.nextInt(1_000_000)));
        break;
      case "mixed":
        write(dir, compressor, rows, List.of("a bigint", "b double", "c timestamp", "d boolean", "e uuid", "f text", "g text", "h float", "i int"), "",
            (key, random) -> Arrays.asList(random.nextLong() >> 20, random.nextInt(100_000) / 100.0,
                new java.util.Date(START / 1000 + random.nextInt(100_000_000)), random.nextBoolean(),
                new java.util.UUID(random.nextLong(), random.nextLong()), "status " + random.nextInt(20), text(12, random),
                (float) random.nextInt(1000), random.nextInt()));
        break;
      case "series":
        series(dir, compressor, rows);
        break;
      case "sparse": {
        int columns = 197;
        String[] types = {"int", "bigint", "text", "double"};
        List<String> definitions = new ArrayList<>();
        for (int i = 0; i < columns; i++) definitions.add("c" + i + " " + types[i % 4]);
        write(dir, compressor, rows, definitions, "", (key, random) -> {
          Object[] row = new Object[columns];
          for (int n = 0; n < 10; n++) {
            int i = random.nextInt(columns);
            row[i] = i % 4 == 0 ? (Object) random.nextInt(1000)
                : i % 4 == 1 ? (Object) random.nextLong(1_000_000_000L) : i % 4 == 2 ? (Object) ("value " + random.nextInt(1000)) : (Object) (random.nextInt(10_000) / 4.0);
          }
          return Arrays.asList(row);
        });
        break;
      }
      case "csv":
        csv(dir, compressor, words[1], words[2].split(","));
        break;
      default:
        throw new IllegalArgumentException("no table " + arguments[1]);
    }
    System.exit(0);
  }

  static Object number(String range, SplittableRandom random) {
    return range.equals("full") ? random.nextInt() : random.nextInt(Integer.parseInt(range));
  }

  static String text(int length, SplittableRandom random) {
    StringBuilder text = new StringBuilder(length);
    for (int i = 0; i < length; i++) text.append((char) ('a' + random.nextInt(26)));
    return text.toString();
  }

  /** Tables whose key is an int: numbers from 0 on, in the order of their tokens. */
  static void write(File dir, String compressor, int rows, List<String> definitions, String ending, Filler filler) throws Exception {
    StringBuilder create = new StringBuilder("CREATE TABLE bench.t (key int PRIMARY KEY");
    StringBuilder names = new StringBuilder("key");
    StringBuilder marks = new StringBuilder("?");
    for (String definition : definitions) {
      create.append(", ").append(definition);
      names.append(", ").append(definition.split(" ")[0]);
      marks.append(", ?");
    }
    create.append(") WITH compression = ").append(compression(compressor));
    long[][] order = new long[rows][];
    for (int key = 0; key < rows; key++) order[key] = new long[] {token(ByteBufferUtil.bytes(key)), key};
    if (!"unsorted".equals(ORDER)) Arrays.sort(order, (a, b) -> Long.compare(a[0], b[0]));
    String insert = "INSERT INTO bench.t (" + names + ") VALUES (" + marks + ") USING TIMESTAMP ?" + ending;
    double[] before = clocks();
    long used = 0;
    if (ORDER != null) {
      for (long[] entry : order) used += row((int) entry[1], filler).hashCode();
    }
    double[] made = clocks();
    try (CQLSSTableWriter writer = writer(dir, create.toString(), insert)) {
      for (long[] entry : order) writer.addRow(row((int) entry[1], filler));
    }
    double[] done = clocks();
    describe(dir, create.toString());
    if (ORDER != null) {
      System.out.println((done[0] - made[0]) + " " + (done[1] - made[1]) + " " + (made[0] - before[0]) + " " + (made[1] - before[1]) + " " + (used & 1));
    }
  }

  static List<Object> row(int key, Filler filler) {
    SplittableRandom random = new SplittableRandom(key);
    List<Object> row = new ArrayList<>();
    row.add(key);
    for (Object value : filler.row(key, random)) row.add(value == null ? CQLSSTableWriter.UNSET_VALUE : value);
    row.add(ORDER == null ? written(key, random) : START + key);
    return row;
  }

  /** Seconds of a clock, and of all threads' CPU time. */
  static double[] clocks() {
    com.sun.management.OperatingSystemMXBean system = (com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean();
    return new double[] {System.nanoTime() / 1e9, system.getProcessCpuTime() / 1e9};
  }

  static void series(File dir, String compressor, int rows) throws Exception {
    int sensors = Math.max(1, rows / 1000);
    String create = "CREATE TABLE bench.t (sensor int, at timestamp, value double, quality tinyint, PRIMARY KEY (sensor, at)) WITH compression = " + compression(compressor);
    String insert = "INSERT INTO bench.t (sensor, at, value, quality) VALUES (?, ?, ?, ?) USING TIMESTAMP ? AND TTL 2592000";
    long[][] order = new long[sensors][];
    for (int key = 0; key < sensors; key++) order[key] = new long[] {token(ByteBufferUtil.bytes(key)), key};
    Arrays.sort(order, (a, b) -> Long.compare(a[0], b[0]));
    try (CQLSSTableWriter writer = writer(dir, create, insert)) {
      for (long[] entry : order) {
        int sensor = (int) entry[1];
        SplittableRandom random = new SplittableRandom(sensor);
        double value = random.nextInt(1000);
        for (int i = 0; i < rows / sensors; i++) {
          value += random.nextInt(21) / 10.0 - 1.0;
          long millis = START / 1000 + i * 10_000L;
          long micros = millis * 1000 + sensor * 37L + random.nextInt(2000);
          writer.addRow(Arrays.asList(sensor, new java.util.Date(millis), Math.round(value * 10) / 10.0, (byte) (random.nextInt(50) == 0 ? 1 : 0), micros));
        }
      }
    }
    describe(dir, create);
  }

  /** Rows of standard input. The key's type is that of its column; without one (`-`) the number of the line is the key. */
  static void csv(File dir, String compressor, String key, String[] columns) throws Exception {
    List<String> names = new ArrayList<>();
    List<String> types = new ArrayList<>();
    for (String column : columns) {
      names.add(column.split("=")[0]);
      types.add(column.split("=")[1]);
    }
    List<Object[]> rows = new ArrayList<>();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 20);
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      rows.add(new Object[] {token(ByteBufferUtil.bytes(rows.size())), rows.size(), line});
    }
    rows.sort((a, b) -> Long.compare((Long) a[0], (Long) b[0]));
    StringBuilder create = new StringBuilder("CREATE TABLE bench.t (" + key + " int PRIMARY KEY");
    StringBuilder into = new StringBuilder(key);
    for (int i = 0; i < names.size(); i++) {
      create.append(", \"").append(names.get(i)).append("\" ").append(types.get(i));
      into.append(", \"").append(names.get(i)).append("\"");
    }
    create.append(") WITH compression = ").append(compression(compressor));
    String marks = String.join(", ", Collections.nCopies(names.size() + 1, "?"));
    String insert = "INSERT INTO bench.t (" + into + ") VALUES (" + marks + ") USING TIMESTAMP ?";
    try (CQLSSTableWriter writer = writer(dir, create.toString(), insert)) {
      for (Object[] entry : rows) {
        int number = (Integer) entry[1];
        List<String> fields = fields((String) entry[2]);
        if (fields.size() != names.size()) throw new IllegalArgumentException("line " + (number + 1) + " has " + fields.size() + " fields");
        List<Object> row = new ArrayList<>();
        row.add(number);
        for (int i = 0; i < names.size(); i++) row.add(value(types.get(i), fields.get(i)));
        row.add(written(number, new SplittableRandom(number)));
        writer.addRow(row);
      }
    }
    describe(dir, create.toString());
  }

  static Object value(String type, String field) {
    if (field == null) return CQLSSTableWriter.UNSET_VALUE;
    switch (type) {
      case "int": return Integer.valueOf(field);
      case "bigint": return Long.valueOf(field);
      case "double": return Double.valueOf(field);
      case "boolean": return Boolean.valueOf(field);
      case "text": return field;
      default: throw new IllegalArgumentException("no type " + type);
    }
  }

  /** The fields of a line; those without anything, not even quotes, are null. */
  static List<String> fields(String line) {
    List<String> fields = new ArrayList<>();
    int at = 0;
    while (true) {
      if (at < line.length() && line.charAt(at) == '"') {
        StringBuilder field = new StringBuilder();
        at++;
        while (true) {
          char c = line.charAt(at++);
          if (c != '"') field.append(c);
          else if (at < line.length() && line.charAt(at) == '"') { field.append('"'); at++; }
          else break;
        }
        fields.add(field.toString());
      } else {
        int end = line.indexOf(',', at);
        if (end < 0) end = line.length();
        fields.add(end == at ? null : line.substring(at, end));
        at = end;
      }
      if (at >= line.length()) return fields;
      at++;
      if (at == line.length()) { fields.add(null); return fields; }
    }
  }

  static long written(int key, SplittableRandom random) {
    return START + key * ROW_MICROS + random.nextInt((int) ROW_MICROS);
  }

  static long token(ByteBuffer key) {
    return Murmur3Partitioner.instance.getToken(key).token;
  }

  static String compression(String compressor) {
    return compressor.equals("none") ? "{'enabled': 'false'}" : "{'class': '" + compressor + "'}";
  }

  static CQLSSTableWriter writer(File dir, String create, String insert) {
    CQLSSTableWriter.Builder builder = CQLSSTableWriter.builder().inDirectory(dir.getPath()).forTable(create).using(insert).withPartitioner(Murmur3Partitioner.instance);
    return ("unsorted".equals(ORDER) ? builder : builder.sorted()).build();
  }

  /** Names of key columns are not in SSTables. */
  static void describe(File dir, String create) throws Exception {
    java.nio.file.Files.writeString(new File(dir, "schema.cql").toPath(), create + ";\n");
  }
}
