import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;

/**
 * A contestant of bench-cluster: loads a file into a table of Cassandra, or unloads it, by the Spark Cassandra Connector on two local cores.
 *
 * <p>Arguments: load or unload, host, port, keyspace, table, csv or parquet, the file or (unloading) the folder to make, and the columns as Spark's
 * DDL ("id BIGINT, c0 STRING"), so that Spark need not read a CSV twice to infer them.
 */
public final class SparkCopy {
  private SparkCopy() {}

  public static void main(String[] arguments) {
    boolean isLoad = arguments[0].equals("load");
    String keyspace = arguments[3];
    String table = arguments[4];
    String format = arguments[5];
    String path = arguments[6];
    SparkSession spark =
        SparkSession.builder()
            .master("local[2]")
            .appName("SparkCopy")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.cassandra.connection.host", arguments[1])
            .config("spark.cassandra.connection.port", arguments[2])
            .getOrCreate();
    Dataset<Row> rows;
    if (!isLoad) {
      rows =
          spark
              .read()
              .format("org.apache.spark.sql.cassandra")
              .option("keyspace", keyspace)
              .option("table", table)
              .load();
    } else if (format.equals("csv")) {
      rows = spark.read().option("header", "true").schema(arguments[7]).csv(path);
    } else {
      rows = spark.read().parquet(path);
    }
    if (isLoad) {
      rows.write()
          .format("org.apache.spark.sql.cassandra")
          .option("keyspace", keyspace)
          .option("table", table)
          .mode(SaveMode.Append)
          .save();
    } else if (format.equals("csv")) {
      rows.write().option("header", "true").csv(path);
    } else {
      rows.write().parquet(path);
    }
    spark.stop();
  }
}
