//! Units of measure and of money: how they are written, and their singular and plural.

/// One unit.
#[derive(Debug)]
pub(super) struct Unit {
    /// As it is written; case counts.
    symbol: &'static str,
    /// After "one".
    one: &'static str,
    /// After any other number.
    many: &'static str,
    /// Whether a space may stand between the number and it; `false` where it would be taken for a word.
    apart: bool,
}

const fn unit(symbol: &'static str, one: &'static str, many: &'static str) -> Unit {
    Unit { symbol, one, many, apart: true }
}

const fn glued(symbol: &'static str, one: &'static str, many: &'static str) -> Unit {
    Unit { symbol, one, many, apart: false }
}

/// Source: SI brochure for the symbols, US spelling for the names; own choice of what assistants write.
const UNITS: &[Unit] = &[
    unit("km", "kilometer", "kilometers"),
    unit("m", "meter", "meters"),
    unit("cm", "centimeter", "centimeters"),
    unit("mm", "millimeter", "millimeters"),
    unit("µm", "micrometer", "micrometers"),
    unit("nm", "nanometer", "nanometers"),
    unit("mi", "mile", "miles"),
    unit("ft", "foot", "feet"),
    unit("yd", "yard", "yards"),
    glued("in", "inch", "inches"),
    glued("'", "foot", "feet"),
    glued("\"", "inch", "inches"),
    unit("km²", "square kilometer", "square kilometers"),
    unit("m²", "square meter", "square meters"),
    unit("m³", "cubic meter", "cubic meters"),
    unit("sqft", "square foot", "square feet"),
    unit("ha", "hectare", "hectares"),
    unit("kg", "kilogram", "kilograms"),
    unit("g", "gram", "grams"),
    unit("mg", "milligram", "milligrams"),
    unit("µg", "microgram", "micrograms"),
    unit("lb", "pound", "pounds"),
    unit("lbs", "pound", "pounds"),
    unit("oz", "ounce", "ounces"),
    unit("l", "liter", "liters"),
    unit("L", "liter", "liters"),
    unit("ml", "milliliter", "milliliters"),
    unit("mL", "milliliter", "milliliters"),
    unit("cl", "centiliter", "centiliters"),
    unit("gal", "gallon", "gallons"),
    unit("tbsp", "tablespoon", "tablespoons"),
    unit("tsp", "teaspoon", "teaspoons"),
    glued("s", "second", "seconds"),
    unit("sec", "second", "seconds"),
    unit("secs", "second", "seconds"),
    unit("ms", "millisecond", "milliseconds"),
    unit("µs", "microsecond", "microseconds"),
    unit("ns", "nanosecond", "nanoseconds"),
    unit("min", "minute", "minutes"),
    unit("mins", "minute", "minutes"),
    unit("h", "hour", "hours"),
    unit("hr", "hour", "hours"),
    unit("hrs", "hour", "hours"),
    glued("d", "day", "days"),
    unit("yr", "year", "years"),
    unit("yrs", "year", "years"),
    unit("mph", "mile per hour", "miles per hour"),
    unit("km/h", "kilometer per hour", "kilometers per hour"),
    unit("kph", "kilometer per hour", "kilometers per hour"),
    unit("m/s", "meter per second", "meters per second"),
    unit("rpm", "R P M", "R P M"),
    unit("fps", "frame per second", "frames per second"),
    unit("Hz", "hertz", "hertz"),
    unit("kHz", "kilohertz", "kilohertz"),
    unit("MHz", "megahertz", "megahertz"),
    unit("GHz", "gigahertz", "gigahertz"),
    unit("B", "byte", "bytes"),
    unit("KB", "kilobyte", "kilobytes"),
    unit("kB", "kilobyte", "kilobytes"),
    unit("MB", "megabyte", "megabytes"),
    unit("GB", "gigabyte", "gigabytes"),
    unit("TB", "terabyte", "terabytes"),
    unit("PB", "petabyte", "petabytes"),
    unit("KiB", "kibibyte", "kibibytes"),
    unit("MiB", "mebibyte", "mebibytes"),
    unit("GiB", "gibibyte", "gibibytes"),
    unit("kbps", "kilobit per second", "kilobits per second"),
    unit("Mbps", "megabit per second", "megabits per second"),
    unit("Gbps", "gigabit per second", "gigabits per second"),
    unit("MB/s", "megabyte per second", "megabytes per second"),
    unit("GB/s", "gigabyte per second", "gigabytes per second"),
    unit("W", "watt", "watts"),
    unit("kW", "kilowatt", "kilowatts"),
    unit("MW", "megawatt", "megawatts"),
    unit("GW", "gigawatt", "gigawatts"),
    unit("kWh", "kilowatt hour", "kilowatt hours"),
    unit("V", "volt", "volts"),
    unit("kV", "kilovolt", "kilovolts"),
    unit("mV", "millivolt", "millivolts"),
    unit("mA", "milliamp", "milliamps"),
    unit("mAh", "milliamp hour", "milliamp hours"),
    glued("A", "amp", "amps"),
    unit("Ω", "ohm", "ohms"),
    unit("kcal", "kilocalorie", "kilocalories"),
    unit("cal", "calorie", "calories"),
    unit("J", "joule", "joules"),
    unit("kJ", "kilojoule", "kilojoules"),
    unit("N", "newton", "newtons"),
    unit("Pa", "pascal", "pascals"),
    unit("kPa", "kilopascal", "kilopascals"),
    unit("hPa", "hectopascal", "hectopascals"),
    unit("psi", "P S I", "P S I"),
    unit("dB", "decibel", "decibels"),
    unit("°C", "degree Celsius", "degrees Celsius"),
    unit("°F", "degree Fahrenheit", "degrees Fahrenheit"),
    unit("ºC", "degree Celsius", "degrees Celsius"),
    unit("ºF", "degree Fahrenheit", "degrees Fahrenheit"),
    unit("°", "degree", "degrees"),
    glued("k", "thousand", "thousand"),
    glued("M", "million", "million"),
    glued("bn", "billion", "billion"),
    unit("%", "percent", "percent"),
    unit("‰", "per mille", "per mille"),
    unit("px", "pixel", "pixels"),
    unit("pt", "point", "points"),
    unit("x", "times", "times"),
    glued("×", "times", "times"),
    unit("USD", "US dollar", "US dollars"),
    unit("EUR", "euro", "euros"),
    unit("GBP", "pound", "pounds"),
    unit("JPY", "yen", "yen"),
    unit("CHF", "Swiss franc", "Swiss francs"),
    glued("€", "euro", "euros"),
    glued("£", "pound", "pounds"),
    glued("$", "dollar", "dollars"),
    glued("¢", "cent", "cents"),
    glued("¥", "yen", "yen"),
];

/// The name of the unit `symbol` after a number; `apart` says that white space stands between the two.
pub(super) fn name(symbol: &str, is_one: bool, apart: bool) -> Option<&'static str> {
    let unit = UNITS.iter().find(|unit| unit.symbol == symbol && (unit.apart || !apart))?;
    // A lone capital after a space is a name more often than a unit, except for these.
    if apart && symbol.len() == 1 && !"mghlLWV%".contains(symbol) {
        return None;
    }
    Some(if is_one { unit.one } else { unit.many })
}

/// A currency sign before an amount.
#[derive(Debug)]
pub(super) struct Currency {
    sign: &'static str,
    one: &'static str,
    many: &'static str,
    /// A hundredth, singular and plural; empty if there is none.
    cent: [&'static str; 2],
}

const CURRENCIES: &[Currency] = &[
    Currency { sign: "US$", one: "US dollar", many: "US dollars", cent: ["cent", "cents"] },
    Currency { sign: "C$", one: "Canadian dollar", many: "Canadian dollars", cent: ["cent", "cents"] },
    Currency { sign: "A$", one: "Australian dollar", many: "Australian dollars", cent: ["cent", "cents"] },
    Currency { sign: "$", one: "dollar", many: "dollars", cent: ["cent", "cents"] },
    Currency { sign: "€", one: "euro", many: "euros", cent: ["cent", "cents"] },
    Currency { sign: "£", one: "pound", many: "pounds", cent: ["penny", "pence"] },
    Currency { sign: "¥", one: "yen", many: "yen", cent: ["", ""] },
    Currency { sign: "₹", one: "rupee", many: "rupees", cent: ["paisa", "paise"] },
    Currency { sign: "₩", one: "won", many: "won", cent: ["", ""] },
    Currency { sign: "₿", one: "bitcoin", many: "bitcoins", cent: ["", ""] },
];

impl Currency {
    /// The currency whose sign starts `text`, and the rest.
    pub(super) fn parse(text: &str) -> Option<(&'static Self, &str)> {
        CURRENCIES.iter().find_map(|currency| Some((currency, text.strip_prefix(currency.sign)?)))
    }

    /// "dollar" or "dollars".
    pub(super) fn name(&self, is_one: bool) -> &'static str {
        if is_one { self.one } else { self.many }
    }

    /// "cent" or "cents"; `None` if the currency has no hundredths in use.
    pub(super) fn cent(&self, is_one: bool) -> Option<&'static str> {
        Some(self.cent[usize::from(!is_one)]).filter(|name| !name.is_empty())
    }
}

/// Words and letters that scale an amount of money: "$3 million", "$3M".
pub(super) fn scale(text: &str) -> Option<&'static str> {
    match text {
        "thousand" | "K" | "k" => Some("thousand"),
        "million" | "M" | "m" | "mn" => Some("million"),
        "billion" | "B" | "b" | "bn" => Some("billion"),
        "trillion" | "T" | "tn" => Some("trillion"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(name("km", false, true), Some("kilometers"));
        assert_eq!(name("km", true, false), Some("kilometer"));
        assert_eq!(name("in", false, true), None, "a word");
        assert_eq!(name("in", false, false), Some("inches"));
        assert_eq!(name("A", false, true), None);
        assert_eq!(name("Km", false, true), None);
    }

    #[test]
    fn every_symbol_has_one_row() {
        for (at, unit) in UNITS.iter().enumerate() {
            assert!(UNITS[at + 1..].iter().all(|other| other.symbol != unit.symbol), "{}", unit.symbol);
        }
    }
}
