#!/usr/bin/env python3
"""Makes gdelt.json, by which `bench-gdelt` makes events: what GDELT's events of 1979 to 1984 are like, from two excerpts of them.

    fit_gdelt.py gdelt-events-sample.csv gdelt-1k-tab.csv > gdelt.json

The first excerpt has all columns: 201 events of January 1982, and others of 2016 whose actors and places are known, too, and rarer. The second has a
thousand events of the era, of which it tells the year, the actors' codes and what happened. Nothing reads the excerpts afterwards.

What the file has: counts, as weights; names of actors and places, as GDELT has them (https://www.gdeltproject.org, free to use and to pass on with this
reference); and, of what is too rare to be in an excerpt, how large a part it is (Good-Turing: that of what was seen once) and how it is made up.
"""

import json
import sys
from collections import Counter, defaultdict

# What is known from other years alone counts by this much: actors, and places, of which there are more.
OTHER_YEARS = 0.25
OTHER_YEARS_PLACES = 0.05
# Columns by their place.
ACTOR1, ACTOR2, EVENT, GEO1, GEO2, ACTION = 5, 15, 26, 35, 42, 49
# Of 1983 the excerpt has no end, and of 1984 nothing: they are as 1982.
YEARS_AS_1982 = ("1983", "1984")


def read(path, separator):
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n").split(separator) for line in file]


def seen_once(counts):
    return round(sum(1 for count in counts.values() if count == 1) / sum(counts.values()), 3)


def weighed(counts):
    """Pairs of weights and what they are of, the heaviest first."""
    return [[round(weight, 3), *([key] if isinstance(key, str) else key)] for key, weight in sorted(counts.items(), key=lambda it: (-it[1], it[0]))]


def quantiles(values, parts=20):
    values = sorted(values)
    return [values[(len(values) - 1) * part // parts] for part in range(parts + 1)]


def ratio(tone):
    """A tone is a hundred times a difference of words by the words of a document: both, of the shortest document that it can be."""
    tone = float(tone)
    for words in range(40, 4000):
        difference = round(tone * words / 100)
        if f"{100 * difference / words:.14g}" == f"{tone:.14g}":
            return words, tone
    return None


def actors(era, others, thousand):
    """Of each code how often it is there and under which names, and what its parts are."""
    fields, names, codes, parts = {}, defaultdict(Counter), Counter(), Counter()
    for rows, weight in ((era, 1.0), (others, OTHER_YEARS)):
        for row in rows:
            for at in (ACTOR1, ACTOR2):
                if row[at]:
                    fields.setdefault(row[at], row[at + 2 : at + 10])
                    names[row[at]][row[at + 1]] += weight
                    codes[row[at]] += weight
    countries = {row[0] for row in fields.values() if row[0]}
    roles, religions, groups = Counter(), set(), set()
    for code, (country, group, ethnic, religion1, religion2, *types) in fields.items():
        religions |= {religion1, religion2} - {""}
        groups |= {group} - {""}
        if not (group or ethnic or religion1) and types[0]:
            roles["".join(types)] += codes[code]
    types = {role[:3] for role in roles}
    once = Counter()
    for row in thousand:
        for code in filter(None, row[1:3]):
            once[code] += 1
            codes[code] += 1
            if code in fields:
                continue
            # Its parts, of three letters each.
            columns, left = [""] * 8, [code[at : at + 3] for at in range(0, len(code), 3)]
            if left[0] not in types | religions | groups:
                columns[0] = left.pop(0)
            kinds = []
            for part in left:
                if part in groups and not columns[1]:
                    columns[1] = part
                elif part in religions and not columns[4]:
                    columns[4 if columns[3] else 3] = part
                else:
                    kinds.append(part)
            columns[5:8] = (kinds + ["", "", ""])[:3]
            fields[code] = columns
    for code, columns in fields.items():
        parts[columns[0]] += codes[code]
    known = []
    for code in sorted(codes, key=lambda code: (-codes[code], code)):
        total = sum(names[code].values())
        many = [[round(weight / total, 3), name] for name, weight in names[code].most_common()]
        known.append([round(codes[code], 3), code, fields[code], many])
    by_name = Counter((row[at], row[at + 1]) for row in era for at in (ACTOR1, ACTOR2) if row[at])
    return {
        "known": known,
        # Codes that no excerpt has, and other names of codes that it has.
        "rare_codes": seen_once(once),
        "rare_names": round(max(seen_once(by_name) - seen_once(once), 0), 3),
        "countries": weighed({country: weight for country, weight in parts.items() if country and country in countries}),
        "roles": weighed(roles),
    }


def events(era, others, thousand):
    """Each kind of event with what follows from it."""
    counts, more = Counter(), {}
    for rows, weight in ((era, 1.0), (others, OTHER_YEARS)):
        for row in rows:
            code, base, root, quad, scale = row[EVENT : EVENT + 5]
            counts[code] += weight
            more.setdefault(code, (base, root, quad, f"{float(scale):g}"))
    quads = {root: quad for _, root, quad, _ in more.values()}
    for row in thousand:
        code, base, root, scale = row[3:7]
        counts[code] += 1
        more.setdefault(code, (base, root, quads[root], f"{float(scale):g}"))
    return weighed({(code, *more[code]): weight for code, weight in counts.items()})


def places(era, others):
    """Each place, by the documents that it is in: a day and a tone are one."""
    counts = Counter()
    for rows, weight in ((era, 1.0), (others, OTHER_YEARS_PLACES)):
        found, types = set(), defaultdict(Counter)
        for row in rows:
            for at in (GEO1, GEO2, ACTION):
                if row[at + 1]:
                    place = tuple(row[at + 1 : at + 7])
                    # In 2016, countries and states are features of their own names.
                    place = (*place[:5], place[5] if place[5].lstrip("-").isdigit() else "0")
                    types[place][row[at]] += 1
                    found.add((row[1], row[34], place))
        for _, _, place in found:
            kind = next(kind for kind, _ in types[place].most_common() + [("4", 0)] if kind != "0")
            counts[(kind, *place)] += weight
    in_era = Counter()
    for day_and_place in {(row[1], row[34], tuple(row[at + 1 : at + 7])) for row in era for at in (GEO1, GEO2, ACTION) if row[at + 1]}:
        in_era[day_and_place[2]] += 1
    # Those of other years are as rare, and known.
    known = sum(weight for place, weight in counts.items() if tuple(place[1:]) not in in_era)
    return {"known": weighed(counts), "rare": round(seen_once(in_era) - known / sum(counts.values()), 3)}


def geography(era):
    """How the three places of an event go together."""
    def geo(row, at):
        return tuple(row[at + 1 : at + 7]) if row[at + 1] else None

    both = [row for row in era if geo(row, GEO1) and geo(row, GEO2)]
    two = [row for row in both if geo(row, GEO1) != geo(row, GEO2)]
    one = [row for row in era if bool(geo(row, GEO1)) != bool(geo(row, GEO2))]

    def part(some, of):
        return round(len(some) / len(of), 3)

    def action_is(row, at):
        return geo(row, ACTION) == geo(row, at)

    return {
        "unknown": part([row for row in era if row[ACTOR1] and not geo(row, GEO1)], [row for row in era if row[ACTOR1]]),
        "same": part([row for row in both if geo(row, GEO1) == geo(row, GEO2)], both),
        "action_first": part([row for row in two if action_is(row, GEO1)], two),
        "action_second": part([row for row in two if action_is(row, GEO2)], two),
        "action_of_one": part([row for row in one if action_is(row, GEO1) or action_is(row, GEO2)], one),
        # The types of the three places that are 0, whatever the place.
        "untyped": [part([row for row in era if row[at] == "0"], era) for at in (GEO1, GEO2, ACTION)],
    }


def homes(era, others):
    """The country, as places have it, of each country as actors have it; and how many actors are in their own."""
    pairs = defaultdict(Counter)
    for row in era + others:
        for actor, geo in ((ACTOR1, GEO1), (ACTOR2, GEO2)):
            if row[actor + 2] and row[geo + 2]:
                pairs[row[actor + 2]][row[geo + 2]] += 1
    countries = {row[at + 1].upper(): row[at + 2] for row in era + others for at in (GEO1, GEO2, ACTION) if row[at] == "1"}
    found = {}
    for country, counts in sorted(pairs.items()):
        names = {row[at + 1] for row in era + others for at in (ACTOR1, ACTOR2) if row[at + 2] == country}
        # POLAND and POLISH are in Poland.
        alike = sorted(code for name, code in countries.items() if any(name == other or name[:3] == other[:3] for other in names))
        exact = sorted(code for name, code in countries.items() if name in names)
        found[country] = (exact or [code for code, _ in counts.most_common() if code in alike] or [counts.most_common(1)[0][0]])[0]
    of_era = [found[row[actor + 2]] == row[geo + 2] for row in era for actor, geo in ((ACTOR1, GEO1), (ACTOR2, GEO2)) if row[actor + 2] and row[geo + 2]]
    return found, round(sum(of_era) / len(of_era), 3)


def document_events(era, days, documents):
    """How many events a document has on average, if their numbers fall geometrically and an excerpt of every tenth event has so many documents."""
    of_day = sum(count for count in days.values() if count > 50) * 10 / 2
    wanted = documents * of_day / 10 / len(era)
    for tenths in range(10, 1000):
        mean = tenths / 10
        unseen = 0.9 / mean / (1 - (1 - 1 / mean) * 0.9)
        if of_day / mean * (1 - unseen) <= wanted:
            return mean
    raise ValueError("each document has more events than that")


def letters(known):
    """Which letters follow which, in names of actors: a name begins after a space and ends before one."""
    follow = defaultdict(Counter)
    for _, _, _, names in known:
        for _, name in names:
            for word in "".join(letter if letter.isascii() and letter.isalpha() else " " for letter in name).split():
                for one, other in zip(f" {word}", f"{word} "):
                    follow[one][other] += 1
    return {one: "".join(other * min(count, 12) for other, count in sorted(others.items())) for one, others in sorted(follow.items())}


def main():
    sample, thousand = read(sys.argv[1], "\t"), read(sys.argv[2], "\x01")
    era = [row[:57] for row in sample if len(row) == 57]
    others = [row[:57] for row in sample if len(row) == 58]
    years = Counter(row[0] for row in thousand)
    for year in YEARS_AS_1982:
        years[year] = years["1982"]
    documents = Counter((row[1], row[34]) for row in era)
    ratios = [found for found in (ratio(tone) for _, tone in documents if float(tone)) if found]
    found = actors(era, others, thousand)
    days = Counter(row[1] for row in era)
    at_home, home_part = homes(era, others)
    model = {
        "made_by": "dev/bench/fit_gdelt.py, after GDELT (https://www.gdeltproject.org)",
        "years": [[int(year), count] for year, count in sorted(years.items())],
        # Both whole days of the excerpt, which is every tenth event, are of a weekend.
        "weekend_events": round(sum(count for count in days.values() if count > 50) * 10 / 2),
        "added": weighed(Counter(row[56] for row in era)),
        "document_events": document_events(era, days, len(documents)),
        "words": quantiles([words for words, _ in ratios]),
        "tones": quantiles([round(float(tone), 2) for _, tone in documents]),
        "no_tone": round(sum(1 for _, tone in documents if not float(tone)) / len(documents), 3),
        "no_actor1": round(sum(1 for row in era if not row[ACTOR1]) / len(era), 3),
        "no_actor2": round(sum(1 for row in era if not row[ACTOR2]) / len(era), 3),
        "root_events": round(sum(1 for row in era if row[25] == "1") / len(era), 3),
        "mentions": weighed(Counter(tuple(row[31:34]) for row in era)),
        "geography": geography(era),
        "homes": at_home,
        "at_home": home_part,
        "events": events(era, others, thousand),
        "actors": found,
        "places": places(era, others),
        "letters": letters(found["known"]),
    }
    # A line each of what is many.
    print("{")
    parts = []
    for key, value in model.items():
        if key in ("events",):
            parts.append(f' "{key}": [\n' + ",\n".join("  " + json.dumps(it, ensure_ascii=False) for it in value) + "\n ]")
        elif key in ("actors", "places"):
            inner = []
            for name, it in value.items():
                if name == "known":
                    inner.append(f'  "{name}": [\n' + ",\n".join("   " + json.dumps(each, ensure_ascii=False) for each in it) + "\n  ]")
                else:
                    inner.append(f'  "{name}": {json.dumps(it, ensure_ascii=False)}')
            parts.append(f' "{key}": {{\n' + ",\n".join(inner) + "\n }")
        else:
            parts.append(f' "{key}": {json.dumps(value, ensure_ascii=False)}')
    print(",\n".join(parts))
    print("}")


main()
