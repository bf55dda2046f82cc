import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ParquetProperties.WriterVersion;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.GroupWriteSupport;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.MessageTypeParser;

/**
 * Writes files with parquet-java 1.7.0 into the folder named by the first argument. Its DELTA_BYTE_ARRAY pages go on from the
 * page before (PARQUET-246); files of version 1, which have no such pages, hold the same.
 */
public final class Files {
  private static final int ROWS = 400;
  private static final int PAGE_BYTES = 512;
  private static final MessageType SCHEMA = MessageTypeParser.parseMessageType(
      """
      message old {
        required binary s (UTF8); optional binary o (UTF8); required fixed_len_byte_array(6) f; repeated binary r;
        required int64 l; required int32 i; optional boolean b; required double d;
      }
      """);

  public static void main(String[] arguments) throws IOException {
    File folder = new File(arguments[0]);
    folder.mkdirs();
    try (PrintWriter twins = new PrintWriter(new File(folder, "twins.txt"))) {
      for (boolean dictionary : new boolean[] {false, true}) {
        String end = dictionary ? "_dictionary.parquet" : ".parquet";
        write(new File(folder, "v1" + end), WriterVersion.PARQUET_1_0, dictionary);
        write(new File(folder, "v2" + end), WriterVersion.PARQUET_2_0, dictionary);
        twins.println("v2" + end + " v1" + end);
      }
    }
  }

  private static void write(File file, WriterVersion version, boolean dictionary) throws IOException {
    Configuration conf = new Configuration();
    // Hadoop writes a .crc beside each local file otherwise.
    conf.set("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem");
    GroupWriteSupport.setSchema(SCHEMA, conf);
    file.delete();
    try (ParquetWriter<Group> writer = new ParquetWriter<>(new Path(file.getPath()), new GroupWriteSupport(),
        CompressionCodecName.GZIP, 1 << 20, PAGE_BYTES, 128, dictionary, true, version, conf)) {
      for (int row = 0; row < ROWS; row++) {
        Group group = new SimpleGroup(SCHEMA);
        group.add("s", "a common prefix, and more " + row / 7);
        if (row % 3 > 0) {
          group.add("o", "another prefix " + row / 20);
        }
        group.add("f", Binary.fromByteArray(String.format("%06d", row).getBytes()));
        for (int at = 0; at < row % 4; at++) {
          group.add("r", "repeated " + row / 10 + at);
        }
        group.add("l", (long) row * row);
        group.add("i", row % 100);
        if (row % 5 > 0) {
          group.add("b", row % 2 == 0);
        }
        group.add("d", row / 3.0);
        writer.write(group);
      }
    }
  }
}
