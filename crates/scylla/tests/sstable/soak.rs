//! Tables of every type, with every kind of deletion and every compressor, written by a real Cassandra: what is read of them is what its own
//! tool prints, and every partition is found.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::driver::Random;
use crate::files::data_files;

/// A server in a folder of its own, stopped at the end.
struct Server {
    script: PathBuf,
    folder: PathBuf,
    /// Java's options: settings of the server.
    options: String,
}

impl Server {
    /// Starts a server that writes this format.
    fn start(folder: &Path, settings: &[(&str, &str)]) -> Server {
        let script = marquetry_testing::root().join("dev/cassandra.sh");
        let mut options = "-Dcassandra.config.allow_system_properties=true".to_string();
        for (name, value) in settings {
            options += &format!(" -Dcassandra.settings.{name}={value}");
        }
        let server = Server { script, folder: folder.to_path_buf(), options };
        server.run(&["start"], &[]);
        server
    }

    fn run(&self, command: &[&str], arguments: &[&str]) -> String {
        let output = Command::new(&self.script)
            .args(command)
            .arg(&self.folder)
            .args(arguments)
            .env("JDK_JAVA_OPTIONS", &self.options)
            .output()
            .expect("the script");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?} {arguments:?}: {error}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn connect(&self) -> Cql {
        let address = self.run(&["where"], &[]);
        let mut cql = Cql(TcpStream::connect(address.trim()).expect("a connection"));
        // STARTUP, with a map of one string.
        let mut body = 1_u16.to_be_bytes().to_vec();
        for text in ["CQL_VERSION", "3.0.0"] {
            body.extend((text.len() as u16).to_be_bytes());
            body.extend(text.as_bytes());
        }
        cql.send(0x01, &body);
        cql
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new(&self.script).arg("stop").arg(&self.folder).status();
    }
}

/// As much of the native protocol (version 4) as statements without results take.
struct Cql(TcpStream);

impl Cql {
    fn execute(&mut self, statement: &str) {
        let mut body = (statement.len() as u32).to_be_bytes().to_vec();
        body.extend(statement.as_bytes());
        // Consistency ONE, and no flags.
        body.extend([0, 1, 0]);
        self.send(0x07, &body);
    }

    fn send(&mut self, operation: u8, body: &[u8]) {
        let mut frame = vec![4, 0, 0, 0, operation];
        frame.extend((body.len() as u32).to_be_bytes());
        frame.extend(body);
        self.0.write_all(&frame).expect("a frame sent");
        let mut head = [0; 9];
        self.0.read_exact(&mut head).expect("a frame");
        let length = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let mut answer = vec![0; length as usize];
        self.0.read_exact(&mut answer).expect("a frame's body");
        let text = String::from_utf8_lossy(&answer[4.min(answer.len())..]).into_owned();
        assert!(head[4] != 0, "{text}: {}", String::from_utf8_lossy(body));
    }
}

/// Types of columns, as CQL has them.
const TYPES: [&str; 32] = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "varint",
    "decimal",
    "text",
    "ascii",
    "blob",
    "uuid",
    "timeuuid",
    "inet",
    "date",
    "time",
    "timestamp",
    "duration",
    "list<int>",
    "set<text>",
    "map<int, text>",
    "frozen<list<text>>",
    "frozen<set<int>>",
    "frozen<map<text, int>>",
    "tuple<int, text>",
    "frozen<pair>",
    "pair",
    "frozen<list<frozen<set<int>>>>",
    "map<text, frozen<pair>>",
    "vector<float, 3>",
    "list<frozen<tuple<int, bigint>>>",
];

/// A literal of a type.
fn literal(kind: &str, random: &mut Random) -> String {
    let number = |random: &mut Random| random.number().cast_signed() >> random.below(60);
    let small = random.below(240).cast_signed() - 120;
    let hex = |random: &mut Random, bytes: u64| -> String {
        (0..bytes).map(|_| format!("{:02x}", random.byte())).collect()
    };
    let list = |open: &str, close: &str, parts: Vec<String>| format!("{open}{}{close}", parts.join(", "));
    if let Some(inner) = kind.strip_prefix("frozen<") {
        return literal(&inner[..inner.len() - 1], random);
    }
    if let Some((outer, inner)) = kind.split_once('<') {
        let inner = &inner[..inner.len() - 1];
        let (first, second) = inner.split_once(", ").unwrap_or((inner, ""));
        let count = 1 + random.below(3);
        return match outer {
            "list" => list("[", "]", (0..count).map(|_| literal(inner, random)).collect()),
            "set" => list("{", "}", (0..count).map(|_| literal(inner, random)).collect()),
            "map" => {
                let pair =
                    |random: &mut Random| format!("{}: {}", literal(first, random), literal(second, random));
                list("{", "}", (0..count).map(|_| pair(random)).collect())
            }
            "tuple" => {
                let second = if random.below(4) == 0 { "null".into() } else { literal(second, random) };
                format!("({}, {second})", literal(first, random))
            }
            "vector" => list("[", "]", (0..3).map(|_| literal(first, random)).collect()),
            other => panic!("{other} has no literal here"),
        };
    }
    match kind {
        "boolean" => ["true", "false"][random.index(2)].to_string(),
        "tinyint" => small.to_string(),
        "smallint" => (small * 250).to_string(),
        "int" => ((number(random) << 32) >> 32).to_string(),
        "bigint" => number(random).to_string(),
        "float" | "double" => format!("{}.{}", small, random.below(100)),
        "varint" => format!("{}{:020}", small, random.below(1 << 60)),
        "decimal" => format!("{}.{:03}", number(random), random.below(1000)),
        "text" => ["''", "'a'", "'grüße, 雪'", "'a longer text, of some words'"][random.index(4)].to_string(),
        "ascii" => format!("'{}'", hex(random, 3)),
        "blob" => {
            let bytes = [0, 1, 20, 3000][random.index(4)];
            format!("0x{}", hex(random, bytes))
        }
        "uuid" => format!(
            "{}-{}-4{}-8{}-{}",
            hex(random, 4),
            hex(random, 2),
            &hex(random, 2)[1..],
            &hex(random, 2)[1..],
            hex(random, 6)
        ),
        "timeuuid" => format!(
            "{}-{}-1{}-8{}-{}",
            hex(random, 4),
            hex(random, 2),
            &hex(random, 2)[1..],
            &hex(random, 2)[1..],
            hex(random, 6)
        ),
        "inet" => ["'127.0.0.1'", "'2001:db8::1'", "'0.0.0.0'"][random.index(3)].to_string(),
        "date" => format!(
            "'{:04}-{:02}-{:02}'",
            1900 + random.below(200),
            1 + random.below(12),
            1 + random.below(28)
        ),
        "time" => {
            format!("'{:02}:00:{:02}.{:09}'", random.below(24), random.below(60), random.below(1_000_000_000))
        }
        "timestamp" => (number(random) >> 20).to_string(),
        "duration" => format!("{}mo{}d{}ns", random.below(30), random.below(40), random.below(1 << 50)),
        "pair" => format!("{{a: {}, b: {}}}", literal("int", random), literal("text", random)),
        other => panic!("{other} has no literal here"),
    }
}

/// Writes into a table: whole rows, parts of rows, TTLs, and deletions of every kind.
fn write(table: &str, cql: &mut Cql, random: &mut Random) {
    for _ in 0..150 {
        let (pk, at) = (random.below(25), random.below(6));
        let (ck, other) = (literal("bigint", random), random.below(6));
        let row = format!("pk = {pk} AND c = 'c{at}' AND d = {other}");
        let column = random.index(TYPES.len());
        let value = literal(TYPES[column], random);
        let ttl = if random.below(4) == 0 {
            format!("TTL {} AND ", 90_000 + random.below(9))
        } else {
            String::new()
        };
        let using = format!("USING {ttl}TIMESTAMP {}", 1_700_000_000_000_000 + random.below(1 << 40));
        let statement = match random.below(16) {
            0..5 => {
                let mut names = String::new();
                let mut values = String::new();
                for (at, kind) in TYPES.iter().enumerate() {
                    if random.below(3) == 0 {
                        continue;
                    }
                    names += &format!(", v{at}");
                    values += &format!(", {}", literal(kind, random));
                }
                format!(
                    "INSERT INTO {table} (pk, c, d{names}) VALUES ({pk}, 'c{at}', {other}{values}) {using}"
                )
            }
            5..9 => format!("UPDATE {table} {using} SET v{column} = {value} WHERE {row}"),
            9 => format!("UPDATE {table} {using} SET s0 = {ck}, s1 = s1 + {{'{at}'}} WHERE pk = {pk}"),
            10 => format!("DELETE v{column} FROM {table} WHERE {row}"),
            11 => format!("DELETE FROM {table} WHERE {row}"),
            12 => format!("DELETE FROM {table} WHERE pk = {pk} AND c = 'c{at}' AND d >= 2 AND d < 4"),
            13 => format!("DELETE FROM {table} WHERE pk = {pk} AND c > 'c{at}'"),
            14 => format!("DELETE FROM {table} WHERE pk = {}", random.below(200)),
            _ => format!(
                "UPDATE {table} SET v19 = v19 + [7], v21[5] = 'five', v20 = v20 - {{'a'}}, v27.a = 3 WHERE {row}"
            ),
        };
        cql.execute(&statement);
    }
}

#[test]
#[ignore = "soak: starts Cassandras, and sstabledump takes some seconds a file"]
fn tables_of_every_type_deletion_and_compressor() {
    let Some(dump) = marquetry_testing::sstabledump() else { return };
    let folder = std::env::temp_dir().join(format!("marquetry-sstables-{}", std::process::id()));
    let formats: [(&str, &[(&str, &str)]); 3] = [
        ("nb", &[]),
        ("oa", &[("storage_compatibility_mode", "NONE")]),
        ("da", &[("storage_compatibility_mode", "NONE"), ("sstable.selected_format", "bti")]),
    ];
    for (format, settings) in formats {
        let seed = u64::from(format.as_bytes()[0]);
        let server = Server::start(&folder.join(format), settings);
        let mut cql = server.connect();
        let mut random = Random(seed | 1);
        cql.execute(
            "CREATE KEYSPACE soak WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        );
        cql.execute("CREATE TYPE soak.pair (a int, b text)");
        for compressor in ["", "LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor"] {
            let table = format!("soak.t_{}", compressor.to_lowercase());
            let columns: String = TYPES
                .iter()
                .enumerate()
                .map(|(at, kind)| format!(", v{at} {}", kind.replace("pair", "soak.pair")))
                .collect();
            let compression = match compressor {
                "" => "{'enabled': false}".to_string(),
                class => format!("{{'class': '{class}', 'chunk_length_in_kb': 4}}"),
            };
            cql.execute(&format!(
                "CREATE TABLE {table} (pk int, c text, d int, s0 bigint static, s1 set<text> static{columns}, \
                 PRIMARY KEY (pk, c, d)) WITH CLUSTERING ORDER BY (c ASC, d DESC) AND compression = {compression}"
            ));
            // Two SSTables a table.
            for _ in 0..2 {
                write(&table, &mut cql, &mut random);
                server.run(&["nodetool"], &["flush", "soak"]);
            }
        }
        drop(cql);
        let files: Vec<PathBuf> = data_files(&folder.join(format))
            .into_iter()
            .filter(|path| path.to_string_lossy().contains("/soak/"))
            .collect();
        assert!(files.len() >= 10, "{files:?}");
        for path in files {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            assert!(name.starts_with(format), "{name} is not of {format}");
            crate::compare(&path, &dump);
            crate::index::check_all(&path);
        }
    }
    std::fs::remove_dir_all(&folder).expect("the folder");
}
