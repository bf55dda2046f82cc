import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * A contestant of spark_queries.py: the queries on a table of Cassandra, by the Spark Cassandra Connector, with one thread.
 *
 * <p>Arguments: host, port, keyspace, table, rounds, the query that fills a cache, and the queries. Prints a line for each run: the number of the query, the
 * milliseconds, and the rows of the result, tab-separated, with U+001F between their values and U+001E between them. The first run of each is number -1 - query.
 */
public final class SparkQueries {
  private SparkQueries() {}

  public static void main(String[] arguments) {
    SparkSession spark =
        SparkSession.builder()
            .master("local[1]")
            .appName("SparkQueries")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.cassandra.connection.host", arguments[0])
            .config("spark.cassandra.connection.port", arguments[1])
            .getOrCreate();
    spark.sparkContext().setLogLevel("ERROR");
    int rounds = Integer.parseInt(arguments[4]);
    for (int round = 0; round <= rounds; round++) {
      for (int query = 6; query < arguments.length; query++) {
        long start = System.nanoTime();
        Dataset<Row> events =
            spark
                .read()
                .format("org.apache.spark.sql.cassandra")
                .option("keyspace", arguments[2])
                .option("table", arguments[3])
                .load();
        // The last one is on a cached table, which is filled before the time begins.
        boolean isCached = query == arguments.length - 1;
        events.createOrReplaceTempView("events");
        if (isCached) {
          Dataset<Row> some = spark.sql(arguments[5]).cache();
          some.count();
          some.createOrReplaceTempView("events");
          start = System.nanoTime();
        }
        List<Row> rows = spark.sql(arguments[query]).collectAsList();
        double milliseconds = (System.nanoTime() - start) / 1e6;
        List<String> texts = new ArrayList<>();
        for (Row row : rows) {
          texts.add(row.mkString("\u001f"));
        }
        int number = query - 6;
        System.out.println((round == 0 ? -1 - number : number) + "\t" + milliseconds + "\t" + String.join("\u001e", texts));
        if (isCached) {
          spark.catalog().clearCache();
        }
      }
    }
    spark.stop();
  }
}
