import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Set;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.io.sstable.CQLSSTableWriter;

/**
 * Writes the SSTables of `sstables/`, with Cassandra's own writer: one SSTable a run, of versions oa, nb and oa.
 *
 *     T=crates/cli/tests/data/sstables/ks/t-0123456789abcdef0123456789abcdef
 *     dev/cassandra.sh run crates/cli/tests/data/MakeSstables.java $T insert
 *     COMPATIBILITY=CASSANDRA_4 dev/cassandra.sh run crates/cli/tests/data/MakeSstables.java $T update
 *     dev/cassandra.sh run crates/cli/tests/data/MakeSstables.java $T delete
 *
 * What is written: a row (pk, ck) for pk of a, b, c and ck of 1 to 4, at 1000000, with v = 10 ck, the static column of its partition, and two
 * tags; (c, 4) with a TTL of 100,000,000 seconds. At 2000000 v of (a, 1) becomes 100, and (a, 9), which was not inserted, has a v of 900. At
 * 3000000 (b, 2) and (b, 3) are deleted, as a range.
 */
final class MakeSstables {
  static final String TABLE = "CREATE TABLE ks.t (pk text, ck int, st int static, v int, tags set<text>, PRIMARY KEY (pk, ck))"
      + " WITH CLUSTERING ORDER BY (ck DESC) AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}";

  public static void main(String[] args) throws Exception {
    File directory = new File(args[0]);
    Files.createDirectories(directory.toPath());
    DatabaseDescriptor.toolInitialization();
    switch (args[1]) {
      case "insert" -> {
        String insert = "INSERT INTO ks.t (pk, ck, st, v, tags) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP 1000000 AND TTL ?";
        try (CQLSSTableWriter writer = writer(directory, insert)) {
          for (String pk : new String[] {"a", "b", "c"}) {
            for (int ck = 1; ck <= 4; ck++) {
              int ttl = pk.equals("c") && ck == 4 ? 100_000_000 : 0;
              writer.addRow(pk, ck, (int) pk.charAt(0), 10 * ck, Set.of("x", "y" + ck), ttl);
            }
          }
        }
      }
      case "update" -> {
        try (CQLSSTableWriter writer =
            writer(directory, "UPDATE ks.t USING TIMESTAMP 2000000 SET v = ? WHERE pk = ? AND ck = ?")) {
          writer.addRow(100, "a", 1);
          writer.addRow(900, "a", 9);
        }
      }
      default -> {
        try (CQLSSTableWriter writer =
            writer(directory, "DELETE FROM ks.t USING TIMESTAMP 3000000 WHERE pk = ? AND ck >= ? AND ck < ?")) {
          writer.addRow("b", 2, 4);
        }
      }
    }
    System.exit(0);
  }

  static CQLSSTableWriter writer(File directory, String statement) {
    return CQLSSTableWriter.builder().inDirectory(directory.getPath()).forTable(TABLE).using(statement).withPartitioner(Murmur3Partitioner.instance).build();
  }
}
