//! Events like GDELT's of 1979 to 1984, as many as are asked for and always the same: what `gdelt.json` says that they are like (`fit_gdelt.py`
//! makes it from excerpts).
//!
//! A day has *documents*; a document has a tone, some places and some actors, and a few events, each with two of its actors, something that one did to the
//! other, and three of its places. So columns go together as they do in GDELT: events of one document have one tone, and mostly its places; an actor is
//! mostly in its own country; what follows from a code follows from it here. What is too rare to be in an excerpt is made up: always the same
//! name for the same number, small numbers more often. Events of a day are sorted by their actors, as GDELT's are.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::Value;

/// As many events as GDELT has of these six years, by the experiment that was published.
pub const ROWS: u64 = 4_037_539;

/// The columns, and their types in CQL.
pub const COLUMNS: [(&str, &str); 57] = [
    ("globaleventid", "bigint"),
    ("sqldate", "int"),
    ("monthyear", "int"),
    ("year", "int"),
    ("fractiondate", "double"),
    ("actor1code", "text"),
    ("actor1name", "text"),
    ("actor1countrycode", "text"),
    ("actor1knowngroupcode", "text"),
    ("actor1ethniccode", "text"),
    ("actor1religion1code", "text"),
    ("actor1religion2code", "text"),
    ("actor1type1code", "text"),
    ("actor1type2code", "text"),
    ("actor1type3code", "text"),
    ("actor2code", "text"),
    ("actor2name", "text"),
    ("actor2countrycode", "text"),
    ("actor2knowngroupcode", "text"),
    ("actor2ethniccode", "text"),
    ("actor2religion1code", "text"),
    ("actor2religion2code", "text"),
    ("actor2type1code", "text"),
    ("actor2type2code", "text"),
    ("actor2type3code", "text"),
    ("isrootevent", "int"),
    ("eventcode", "text"),
    ("eventbasecode", "text"),
    ("eventrootcode", "text"),
    ("quadclass", "int"),
    ("goldsteinscale", "double"),
    ("nummentions", "int"),
    ("numsources", "int"),
    ("numarticles", "int"),
    ("avgtone", "double"),
    ("actor1geo_type", "int"),
    ("actor1geo_fullname", "text"),
    ("actor1geo_countrycode", "text"),
    ("actor1geo_adm1code", "text"),
    ("actor1geo_lat", "double"),
    ("actor1geo_long", "double"),
    ("actor1geo_featureid", "int"),
    ("actor2geo_type", "int"),
    ("actor2geo_fullname", "text"),
    ("actor2geo_countrycode", "text"),
    ("actor2geo_adm1code", "text"),
    ("actor2geo_lat", "double"),
    ("actor2geo_long", "double"),
    ("actor2geo_featureid", "int"),
    ("actiongeo_type", "int"),
    ("actiongeo_fullname", "text"),
    ("actiongeo_countrycode", "text"),
    ("actiongeo_adm1code", "text"),
    ("actiongeo_lat", "double"),
    ("actiongeo_long", "double"),
    ("actiongeo_featureid", "int"),
    ("dateadded", "int"),
];

/// What is too rare for an excerpt: how many codes, names by code, and places there are at the most.
const RARE_CODES: usize = 1_500;
const RARE_NAMES: usize = 12;
const RARE_PLACES: usize = 15_000;
/// What was seen once is this much of what is rare: an excerpt of every tenth event takes few of a document's.
const RARE: f64 = 0.5;
/// How many of rare codes are a role in a country, and not a country alone.
const RARE_ROLES: f64 = 0.6;
/// Of two actors that are rare by their code, one has a name of its country's.
const NAMES_OF_COUNTRIES: f64 = 0.5;
/// How many places a document has on average, beside its first.
const PLACES_MORE: f64 = 1.8;
/// Those of the second series begin here, and the first year's first at 1.
const LATE_IDS: u64 = 230_000_000;
/// How far a rare place is from the place whose country it has, in degrees.
const DEGREES: f64 = 3.0;

/// The columns as `--schema` takes them.
pub fn schema() -> String {
    let columns: Vec<String> = COLUMNS.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
    columns.join(", ")
}

/// Which events are made.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// How many there are in the six years.
    pub rows: u64,
    /// What makes them others.
    pub seed: u64,
    /// The first day, as 19820102; the first of all unless it is given.
    pub from: Option<u32>,
    /// The last day.
    pub to: Option<u32>,
    /// Every event, or every tenth.
    pub every: u64,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted { rows: ROWS, seed: 1, from: None, to: None, every: 1 }
    }
}

/// What events are like.
pub struct Model {
    value: Value,
    mentions: Weights,
    kinds: Weights,
    codes: Weights,
    names: Vec<Weights>,
    countries: Weights,
    roles: Weights,
    places: Weights,
    /// The codes of actors of a country, as places have it.
    at_home: Vec<(String, Vec<usize>)>,
    letters: Vec<(char, Vec<char>)>,
}

struct Actor {
    code: String,
    name: String,
    columns: [String; 8],
}

#[derive(Clone, PartialEq)]
struct Place {
    kind: String,
    /// The full name, the country, its first division, latitude, longitude, and the number of the name.
    columns: [String; 6],
}

struct Document {
    tone: String,
    places: Vec<Place>,
    actors: Vec<Actor>,
}

struct Event {
    is_late: bool,
    document: usize,
    actors: [Option<usize>; 2],
    kind: usize,
    is_root: bool,
    mentions: usize,
    places: [Option<usize>; 3],
    is_untyped: [bool; 3],
}

impl Model {
    /// The one in `gdelt.json`.
    ///
    /// # Errors
    /// When something is missing from it, named.
    pub fn read() -> Result<Model, String> {
        let value: Value = serde_json::from_str(include_str!("../gdelt.json"))
            .map_err(|error| format!("gdelt.json: {error}"))?;
        let list = |path: &str| {
            value.pointer(path).and_then(Value::as_array).ok_or_else(|| format!("gdelt.json has no {path}"))
        };
        let weights = |path: &str| list(path).map(|items| Weights::of(items));
        let codes = list("/actors/known")?;
        let names = codes.iter().map(|code| Weights::of(code[3].as_array().map_or(&[][..], Vec::as_slice)));
        let mut at_home: Vec<(String, Vec<usize>)> = Vec::new();
        for (at, code) in codes.iter().enumerate() {
            let Some(home) = value["homes"][text(&code[2][0])].as_str() else { continue };
            match at_home.iter_mut().find(|(country, _)| country == home) {
                Some((_, codes)) => codes.push(at),
                None => at_home.push((home.to_owned(), vec![at])),
            }
        }
        let letters = value["letters"].as_object().ok_or("gdelt.json has no letters")?;
        let letters = letters.iter().filter_map(|(one, others)| {
            Some((one.chars().next()?, text(others).chars().collect::<Vec<char>>()))
        });
        Ok(Model {
            mentions: weights("/mentions")?,
            kinds: weights("/events")?,
            codes: weights("/actors/known")?,
            names: names.collect(),
            countries: weights("/actors/countries")?,
            roles: weights("/actors/roles")?,
            places: weights("/places/known")?,
            at_home,
            letters: letters.collect(),
            value,
        })
    }

    /// Writes events as tab-separated text, without a header, and gives their number.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write(&self, wanted: &Wanted, out: &mut impl Write) -> io::Result<u64> {
        let days = self.days(wanted.rows);
        let (mut text, mut written, mut seen) = (String::new(), 0, 0);
        let (mut early_id, mut late_id) = (0, LATE_IDS);
        for day in &days {
            let mut random = Random::new(wanted.seed, u64::from(day.number));
            let late_part = self.late_part();
            let late: Vec<bool> = (0..day.events).map(|_| random.is(late_part)).collect();
            let late_events = u64::try_from(late.iter().filter(|late| **late).count()).unwrap_or(0);
            let is_wanted = wanted.from.is_none_or(|from| from <= day.number)
                && wanted.to.is_none_or(|to| day.number <= to);
            if is_wanted {
                let (documents, events) = self.day(&late, &mut random);
                let (mut early, mut late) = (early_id, late_id);
                for event in &events {
                    let id = if event.is_late { &mut late } else { &mut early };
                    *id += 1;
                    let is_taken = u64::is_multiple_of(seen, wanted.every);
                    seen += 1;
                    if is_taken {
                        self.print(*id, day, &documents[event.document], event, &mut text);
                        written += 1;
                    }
                }
                out.write_all(text.as_bytes())?;
                text.clear();
            }
            late_id += late_events;
            early_id += day.events - late_events;
        }
        Ok(written)
    }

    /// All days, and how many events each has: fewer at weekends.
    fn days(&self, rows: u64) -> Vec<Day> {
        let years = self.value["years"].as_array().map_or(&[][..], Vec::as_slice);
        let of_year = |year: u32| {
            let all: f64 = years.iter().map(|it| number(&it[1])).sum();
            let it = years.iter().find(|it| number(&it[0]) == f64::from(year));
            it.map_or(0.0, |it| number(&it[1])) / all
        };
        // Of the year that the number of a weekend's day is known of.
        let (all, weekends) = (1982_u32, 104.0);
        let events = of_year(all) * 4_037_539.0;
        let weekend = number(&self.value["weekend_events"]);
        let part = weekend / ((events - weekends * weekend) / (365.0 - weekends));
        let mut days = Vec::new();
        // The first of January 1979 is a Monday.
        let mut weekday = 0;
        for year in 1979..=1984 {
            let first = days.len();
            for month in 1..=12 {
                for day in 1..=days_of(year, month) {
                    let weight = if weekday >= 5 { part } else { 1.0 };
                    days.push((year, month, day, weight));
                    weekday = (weekday + 1) % 7;
                }
            }
            let in_all: f64 = days[first..].iter().map(|day| day.3).sum();
            for day in &mut days[first..] {
                day.3 *= of_year(year) / in_all;
            }
        }
        let (mut part, mut before) = (0.0, 0);
        let last = days.len() - 1;
        let days = days.into_iter().enumerate().map(|(at, (year, month, day, weight))| {
            part += weight;
            let until = if at == last { rows } else { whole(part * real(rows)).min(rows) };
            let events = until - before;
            before = until;
            Day { year, month, number: year * 10_000 + month * 100 + day, day, events }
        });
        days.collect()
    }

    fn late_part(&self) -> f64 {
        let added = &self.value["added"];
        number(&added[1][0]) / (number(&added[0][0]) + number(&added[1][0]))
    }

    /// A day's documents and events, in the order in which they are written.
    fn day(&self, late: &[bool], random: &mut Random) -> (Vec<Document>, Vec<Event>) {
        let (mut documents, mut events) = (Vec::new(), Vec::new());
        while events.len() < late.len() {
            let more = random.geometric(number(&self.value["document_events"]));
            let document = self.document(more, random);
            for _ in 0..more.min(late.len() - events.len()) {
                events.push(self.event(late[events.len()], documents.len(), &document, random));
            }
            documents.push(document);
        }
        events.sort_by(|a, b| order(&documents, a).cmp(&order(&documents, b)));
        (documents, events)
    }

    fn document(&self, events: usize, random: &mut Random) -> Document {
        let tone = if random.is(number(&self.value["no_tone"])) {
            "0".to_owned()
        } else {
            let words = random.quantile(&self.value["words"]).round();
            let difference = (random.quantile(&self.value["tones"]) * words / 100.0).round().max(1.0);
            decimal(100.0 * difference / words)
        };
        let mut places = vec![self.place(random)];
        for _ in 0..random.geometric(PLACES_MORE) {
            // Some are of the same country, and all are others.
            let country = places[0].columns[1].clone();
            let tries = if random.is(0.35) { 12 } else { 1 };
            let mut place = self.place(random);
            for _ in 1..tries {
                if place.columns[1] == country {
                    break;
                }
                place = self.place(random);
            }
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let at_home = number(&self.value["at_home"]);
        let actors = 2 + random.geometric(real_of(events).sqrt());
        let actors = (0..actors).map(|_| {
            let actor = self.actor(random);
            let place = &places[random.skewed(places.len())];
            let home = self.at_home.iter().find(|(country, _)| *country == place.columns[1]);
            match home {
                Some((_, codes)) if !actor.columns[0].is_empty() && random.is(at_home) => {
                    // The most usual come first.
                    let most = random.zipf(codes.len()) + 1;
                    let code = codes[random.zipf(most)];
                    self.named(code, random)
                }
                _ => actor,
            }
        });
        let actors = actors.collect();
        Document { tone, places, actors }
    }

    fn event(&self, is_late: bool, document: usize, of: &Document, random: &mut Random) -> Event {
        let first = random.skewed(of.actors.len());
        let second = (first + 1 + random.skewed(of.actors.len() - 1)) % of.actors.len();
        let mut actors = [Some(first), Some(second)];
        if random.is(number(&self.value["no_actor1"])) {
            actors[0] = None;
        } else if random.is(number(&self.value["no_actor2"])) {
            actors[1] = None;
        }
        let geography = &self.value["geography"];
        let part = |name: &str| number(&geography[name]);
        let mut places = actors.map(|actor| {
            actor
                .filter(|_| !random.is(part("unknown")))
                .map(|actor| self.place_of(&of.actors[actor], of, random))
        });
        let action = match places {
            [Some(first), Some(_)] if random.is(part("same")) => {
                places[1] = Some(first);
                Some(first)
            }
            [Some(first), Some(mut second)] => {
                if first == second && of.places.len() > 1 {
                    second = (first + 1 + random.below(of.places.len() - 1)) % of.places.len();
                    places[1] = Some(second);
                }
                let way = random.unit();
                if way < part("action_first") {
                    Some(first)
                } else if way < part("action_first") + part("action_second") {
                    Some(second)
                } else {
                    Some(random.below(of.places.len()))
                }
            }
            [Some(one), None] | [None, Some(one)] => {
                Some(if random.is(part("action_of_one")) { one } else { random.below(of.places.len()) })
            }
            [None, None] => None,
        };
        let untyped = &geography["untyped"];
        Event {
            is_late,
            document,
            actors,
            kind: self.kinds.pick(random),
            is_root: random.is(number(&self.value["root_events"])),
            mentions: self.mentions.pick(random),
            places: [places[0], places[1], action],
            is_untyped: [0, 1, 2].map(|at| random.is(number(&untyped[at]))),
        }
    }

    /// Where an actor is: in its country, if the document has a place there and is not of another mind.
    fn place_of(&self, actor: &Actor, of: &Document, random: &mut Random) -> usize {
        let home = self.value["homes"][&actor.columns[0]].as_str();
        let at = of.places.iter().position(|place| Some(&*place.columns[1]) == home);
        match at {
            Some(at) if random.is(0.6) => at,
            _ => random.skewed(of.places.len()),
        }
    }

    fn actor(&self, random: &mut Random) -> Actor {
        let actors = &self.value["actors"];
        if !random.is(RARE * number(&actors["rare_codes"])) {
            return self.named(self.codes.pick(random), random);
        }
        // A rare code: a country and what an actor is in it. The same number has the same ones.
        let number = random.zipf(RARE_CODES);
        let mut made = Random::new(7, number as u64);
        let country = text(&actors["countries"][self.countries.pick(&mut made)][1]);
        let role = match made.is(RARE_ROLES) {
            true => text(&actors["roles"][self.roles.pick(&mut made)][1]),
            false => "",
        };
        let mut columns: [String; 8] = Default::default();
        country.clone_into(&mut columns[0]);
        for (at, part) in role.as_bytes().chunks(3).take(3).enumerate() {
            columns[5 + at] = String::from_utf8_lossy(part).into_owned();
        }
        let code = format!("{country}{role}");
        let of_country =
            actors["known"].as_array().and_then(|all| all.iter().position(|it| it[1] == country));
        let name = match of_country {
            Some(at) if !self.names[at].is_empty() && random.is(NAMES_OF_COUNTRIES) => {
                self.known_name(at, random)
            }
            _ => self.made_name(&code, random.zipf(RARE_NAMES)),
        };
        Actor { code, name, columns }
    }

    /// An actor of a known code.
    fn named(&self, code: usize, random: &mut Random) -> Actor {
        let actors = &self.value["actors"];
        let known = &actors["known"][code];
        let columns = [0, 1, 2, 3, 4, 5, 6, 7].map(|at| text(&known[2][at]).to_owned());
        let name = if self.names[code].is_empty() || random.is(RARE * number(&actors["rare_names"])) {
            self.made_name(text(&known[1]), random.zipf(RARE_NAMES))
        } else {
            self.known_name(code, random)
        };
        Actor { code: text(&known[1]).to_owned(), name, columns }
    }

    fn known_name(&self, code: usize, random: &mut Random) -> String {
        let names = &self.value["actors"]["known"][code][3];
        text(&names[self.names[code].pick(random)][1]).to_owned()
    }

    /// A name that is always the same for a code and a number.
    fn made_name(&self, code: &str, number: usize) -> String {
        let mut random = Random::new(hash(code), number as u64);
        let words = if random.is(0.3) { 2 } else { 1 };
        let words: Vec<String> = (0..words).map(|_| self.word(&mut random)).collect();
        words.join(" ")
    }

    /// A word of letters that follow one another in names.
    fn word(&self, random: &mut Random) -> String {
        loop {
            let (mut word, mut last) = (String::new(), ' ');
            while word.len() < 11 {
                let Some((_, follow)) = self.letters.iter().find(|(letter, _)| *letter == last) else {
                    break;
                };
                last = follow[random.below(follow.len())];
                if last == ' ' {
                    break;
                }
                word.push(last);
            }
            if word.len() > 3 {
                return word;
            }
        }
    }

    fn place(&self, random: &mut Random) -> Place {
        let places = &self.value["places"];
        let known = &places["known"];
        let of = |at: usize| {
            let place = &known[at];
            Place {
                kind: text(&place[1]).to_owned(),
                columns: [2, 3, 4, 5, 6, 7].map(|column| text(&place[column]).to_owned()),
            }
        };
        if !random.is(RARE * number(&places["rare"])) {
            return of(self.places.pick(random));
        }
        // A rare place: a town in the country of a known one, and mostly in its part of the country.
        let number = random.zipf(RARE_PLACES);
        let mut made = Random::new(11, number as u64);
        let mut near = of(self.places.pick(&mut made));
        while near.kind != "4" && near.kind != "3" {
            near = of(self.places.pick(&mut made));
        }
        let mut parts: Vec<String> = near.columns[0].split(", ").map(str::to_owned).collect();
        parts[0] = self.title(&mut made);
        if near.kind == "4" && parts.len() == 3 && made.is(0.7) {
            parts[1] = self.title(&mut made);
            near.columns[2] = format!("{}{:02}", near.columns[1], made.below(40));
        }
        near.columns[0] = parts.join(", ");
        for (at, most) in [(3, 90.0), (4, 180.0)] {
            let degrees: f64 = near.columns[at].parse().unwrap_or(0.0);
            let degrees = (degrees + DEGREES * (2.0 * made.unit() - 1.0)).clamp(-most, most);
            near.columns[at] = significant(degrees);
        }
        let id = 100_000 + made.below(3_700_000);
        near.columns[5] = if near.kind == "4" { format!("-{id}") } else { (id / 2).to_string() };
        near
    }

    /// A word with a capital letter.
    fn title(&self, random: &mut Random) -> String {
        let word = self.word(random);
        word[..1].to_owned() + &word[1..].to_lowercase()
    }

    fn print(&self, id: u64, day: &Day, document: &Document, event: &Event, out: &mut String) {
        let Day { year, month, number, day, .. } = day;
        let _ = write!(out, "{id}\t{number}\t{year}{month:02}\t{year}");
        let fraction = f64::from((month - 1) * 30 + day) / 365.0;
        let _ = write!(
            out,
            "\t{}",
            decimal((f64::from(*year) + fraction).mul_add(10_000.0, 0.5).floor() / 10_000.0)
        );
        for actor in event.actors {
            let actor = actor.map(|actor| &document.actors[actor]);
            let all = actor.map(|it| [&it.code, &it.name].into_iter().chain(&it.columns));
            match all {
                Some(all) => all.for_each(|column| push(out, column)),
                None => (0..10).for_each(|_| push(out, "")),
            }
        }
        push(out, if event.is_root { "1" } else { "0" });
        let kind = &self.value["events"][event.kind];
        (1..6).for_each(|at| push(out, text(&kind[at])));
        let mentions = &self.value["mentions"][event.mentions];
        (1..4).for_each(|at| push(out, text(&mentions[at])));
        push(out, &document.tone);
        for (at, place) in event.places.into_iter().enumerate() {
            match place.map(|place| &document.places[place]) {
                Some(place) => {
                    push(out, if event.is_untyped[at] { "0" } else { &place.kind });
                    place.columns.iter().for_each(|column| push(out, column));
                }
                None => {
                    (0..4).for_each(|_| push(out, ""));
                    // Nowhere is at 0, 0; and an action there has no number.
                    (0..2).for_each(|_| push(out, "0"));
                    push(out, if at == 2 { "" } else { "0" });
                }
            }
        }
        push(out, text(&self.value["added"][usize::from(event.is_late)][1]));
        out.push('\n');
    }
}

/// What a day's events are sorted by.
fn order<'a>(documents: &'a [Document], event: &Event) -> (bool, &'a str, &'a str) {
    let code = |actor: Option<usize>| {
        actor.map_or("", |actor| documents[event.document].actors[actor].code.as_str())
    };
    (event.is_late, code(event.actors[0]), code(event.actors[1]))
}

struct Day {
    year: u32,
    month: u32,
    day: u32,
    /// As 19820102.
    number: u32,
    events: u64,
}

/// What is picked in proportion to weights.
struct Weights(Vec<f64>);

impl Weights {
    /// Of items that begin with their weights.
    fn of(items: &[Value]) -> Weights {
        let mut sum = 0.0;
        let sums = items.iter().map(|item| {
            sum += number(&item[0]);
            sum
        });
        Weights(sums.collect())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn pick(&self, random: &mut Random) -> usize {
        let wanted = random.unit() * self.0.last().copied().unwrap_or(0.0);
        self.0.partition_point(|sum| *sum <= wanted).min(self.0.len().saturating_sub(1))
    }
}

/// Numbers that look random and are always the same (splitmix64, by Steele, Lea and Flood).
struct Random(u64);

impl Random {
    fn new(seed: u64, of: u64) -> Random {
        let mut random =
            Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ of.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to before 1.
    fn unit(&mut self) -> f64 {
        // 32 bits are enough to choose by, and are exact.
        f64::from(u32::try_from(self.next() >> 32).unwrap_or(0)) / 4_294_967_296.0
    }

    fn is(&mut self, part: f64) -> bool {
        self.unit() < part
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound.max(1) as u64)).unwrap_or(0)
    }

    /// Small numbers more often than large ones, a little.
    fn skewed(&mut self, bound: usize) -> usize {
        usize_of(self.unit().powf(2.4) * real_of(bound)).min(bound.saturating_sub(1))
    }

    /// Numbers in inverse proportion to themselves, counted from 1; from 0 here.
    fn zipf(&mut self, bound: usize) -> usize {
        usize_of((self.unit() * (real_of(bound) + 1.0).ln()).exp() - 1.0).min(bound.saturating_sub(1))
    }

    /// 1 and more, with this mean.
    fn geometric(&mut self, mean: f64) -> usize {
        let stays = 1.0 - 1.0 / mean.max(1.0);
        let mut found = 1;
        while found < 1_000 && self.is(stays) {
            found += 1;
        }
        found
    }

    /// A number between quantiles.
    fn quantile(&mut self, quantiles: &Value) -> f64 {
        let quantiles = quantiles.as_array().map_or(&[][..], Vec::as_slice);
        let at = self.unit() * real_of(quantiles.len() - 1);
        let low = usize_of(at).min(quantiles.len() - 2);
        let (from, to) = (number(&quantiles[low]), number(&quantiles[low + 1]));
        from + (to - from) * (at - real_of(low))
    }
}

fn push(out: &mut String, column: &str) {
    out.push('\t');
    out.push_str(column);
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn real(number: u64) -> f64 {
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}

fn real_of(number: usize) -> f64 {
    real(number as u64)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is rounded, and is none below 0"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is cut, and is none below 0")]
fn usize_of(number: f64) -> usize {
    number as usize
}

fn days_of(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// With 15 digits, of which at most 14 are behind the point, and no zeros at the end: as GDELT prints tones.
fn decimal(number: f64) -> String {
    let before = if number.abs() < 10.0 {
        1
    } else if number.abs() < 1_000.0 {
        2
    } else {
        4
    };
    let text = format!("{number:.*}", 15 - before);
    trimmed(&text)
}

/// With six digits: as GDELT prints degrees.
fn significant(degrees: f64) -> String {
    let whole = degrees.abs();
    let before = if whole < 10.0 {
        1
    } else if whole < 100.0 {
        2
    } else {
        3
    };
    trimmed(&format!("{degrees:.*}", 5_usize.min(6 - before)))
}

fn trimmed(text: &str) -> String {
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
