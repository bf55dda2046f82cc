//! The proleptic Gregorian calendar, and units of time.

use core::fmt;

/// Seconds of a day.
pub const DAY_SECONDS: i64 = 86_400;

/// The unit of a time or timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// 1/1,000 s.
    Millis,
    /// 1/1,000,000 s.
    Micros,
    /// 1/1,000,000,000 s.
    Nanos,
}

impl TimeUnit {
    /// Units in a second.
    pub const fn per_second(self) -> i64 {
        match self {
            TimeUnit::Millis => 1_000,
            TimeUnit::Micros => 1_000_000,
            TimeUnit::Nanos => 1_000_000_000,
        }
    }

    /// Units in a day.
    pub const fn per_day(self) -> i64 {
        DAY_SECONDS * self.per_second()
    }

    /// Digits after the point of a second.
    pub const fn digits(self) -> usize {
        match self {
            TimeUnit::Millis => 3,
            TimeUnit::Micros => 6,
            TimeUnit::Nanos => 9,
        }
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimeUnit::Millis => "MILLIS",
            TimeUnit::Micros => "MICROS",
            TimeUnit::Nanos => "NANOS",
        })
    }
}

/// Year, month (1 to 12) and day (1 to 31) of a day counted from 1970-01-01. The year before 1 is 0.
///
/// The calendar repeats every 400 years, which are 146,097 days; cycles that begin on 1 March have their leap day at
/// the end. Saturates at the last day that 64 bits can shift.
#[inline]
pub const fn civil(days: i64) -> (i64, i64, i64) {
    let days = days.saturating_add(719_468);
    let (cycle, of_cycle) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    // Every 4 years, but not every 100, but every 400 has a leap day; the last of them ends the cycle.
    let year_of_cycle = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let day_of_year = of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    // From March, five months have 153 days, and the pattern repeats.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, next_year) =
        if month_from_march < 10 { (month_from_march + 3, 0) } else { (month_from_march - 9, 1) };
    (cycle * 400 + year_of_cycle + next_year, month, day)
}

/// The day, counted from 1970-01-01, of a year from 0 to 9999, a month and a day. `None` if that day does not exist.
pub fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(0..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let is_leap_year = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of_month = match month {
        2 => 28 + i64::from(is_leap_year),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if day > days_of_month {
        return None;
    }
    // Years from March on, which end with their leap day.
    let (year_from_march, month_from_march) =
        if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days =
        year_from_march.div_euclid(4) - year_from_march.div_euclid(100) + year_from_march.div_euclid(400);
    Some(365 * year_from_march + leap_days + (153 * month_from_march + 2) / 5 + day - 1 - 719_468)
}

/// The same for any year of at most nine digits.
pub fn days_of_any_year(year: i64, month: i64, day: i64) -> Option<i64> {
    const CYCLE_YEARS: i64 = 400;
    const CYCLE_DAYS: i64 = 146_097;
    if !(-999_999_999..=999_999_999).contains(&year) {
        return None;
    }
    // Each four hundred years have the same days.
    let in_cycle = days(year.rem_euclid(CYCLE_YEARS), month, day)?;
    Some(in_cycle + year.div_euclid(CYCLE_YEARS) * CYCLE_DAYS)
}

#[cfg(test)]
mod tests {
    use super::{civil, days, days_of_any_year};

    #[test]
    fn years_beyond_four_digits() {
        for year in [-999_999_999, -400, -1, 0, 2024, 9999, 10_000, 999_999_999] {
            for (month, day) in [(1, 1), (2, 28), (12, 31)] {
                let found = days_of_any_year(year, month, day).unwrap();
                assert_eq!(civil(found), (year, month, day));
            }
        }
        assert_eq!(days_of_any_year(10_001, 2, 29), None);
        assert_eq!(days_of_any_year(1_000_000_000, 1, 1), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic of a million days, without memory")]
    fn every_day_follows_the_one_before() {
        let length = |year: i64, month: i64| match month {
            2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        assert_eq!(civil(0), (1970, 1, 1));
        let mut expected = civil(-800_000);
        for days in -800_000..800_000 {
            assert_eq!(civil(days), expected);
            let (year, month, day) = expected;
            if (0..=9999).contains(&year) {
                assert_eq!(super::days(year, month, day), Some(days));
            }
            expected = match (day < length(year, month), month < 12) {
                (true, _) => (year, month, day + 1),
                (false, true) => (year, month + 1, 1),
                (false, false) => (year + 1, 1, 1),
            };
        }
        assert_eq!(civil(-719_528), (0, 1, 1));
        for (year, month, day) in
            [(2023, 2, 29), (2024, 2, 30), (2024, 4, 31), (2024, 13, 1), (2024, 0, 1), (2024, 1, 0)]
        {
            assert_eq!(days(year, month, day), None);
        }
        assert_eq!(civil(i32::MAX.into()), (5_881_580, 7, 11));
        assert_eq!(civil(i32::MIN.into()), (-5_877_641, 6, 23));
    }
}
