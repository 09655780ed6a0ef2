//! Units of measure and of money: their symbols, and their names in singular and plural.

/// One unit of measure, or of money behind its amount.
#[derive(Debug)]
pub(super) struct Measure {
    /// The written form; case counts.
    symbol: &'static str,
    /// The name after "one".
    one: &'static str,
    /// The name after any other number.
    many: &'static str,
    /// True if a space may stand before the symbol; `false` if the symbol would then be taken for a word.
    apart: bool,
}

const fn measure(symbol: &'static str, one: &'static str, many: &'static str) -> Measure {
    Measure { symbol, one, many, apart: true }
}

const fn glued(symbol: &'static str, one: &'static str, many: &'static str) -> Measure {
    Measure { symbol, one, many, apart: false }
}

/// Source: SI brochure for the symbols, US spelling for the names; own choice, from answers of assistants.
const MEASURES: &[Measure] = &[
    measure("km", "kilometer", "kilometers"),
    measure("m", "meter", "meters"),
    measure("cm", "centimeter", "centimeters"),
    measure("mm", "millimeter", "millimeters"),
    measure("µm", "micrometer", "micrometers"),
    measure("nm", "nanometer", "nanometers"),
    measure("mi", "mile", "miles"),
    measure("ft", "foot", "feet"),
    measure("yd", "yard", "yards"),
    glued("in", "inch", "inches"),
    glued("'", "foot", "feet"),
    glued("\"", "inch", "inches"),
    measure("km²", "square kilometer", "square kilometers"),
    measure("m²", "square meter", "square meters"),
    measure("m³", "cubic meter", "cubic meters"),
    measure("sqft", "square foot", "square feet"),
    measure("ha", "hectare", "hectares"),
    measure("kg", "kilogram", "kilograms"),
    measure("g", "gram", "grams"),
    measure("mg", "milligram", "milligrams"),
    measure("µg", "microgram", "micrograms"),
    measure("lb", "pound", "pounds"),
    measure("lbs", "pound", "pounds"),
    measure("oz", "ounce", "ounces"),
    measure("l", "liter", "liters"),
    measure("L", "liter", "liters"),
    measure("ml", "milliliter", "milliliters"),
    measure("mL", "milliliter", "milliliters"),
    measure("cl", "centiliter", "centiliters"),
    measure("gal", "gallon", "gallons"),
    measure("tbsp", "tablespoon", "tablespoons"),
    measure("tsp", "teaspoon", "teaspoons"),
    glued("s", "second", "seconds"),
    measure("sec", "second", "seconds"),
    measure("secs", "second", "seconds"),
    measure("ms", "millisecond", "milliseconds"),
    measure("µs", "microsecond", "microseconds"),
    measure("ns", "nanosecond", "nanoseconds"),
    measure("min", "minute", "minutes"),
    measure("mins", "minute", "minutes"),
    measure("h", "hour", "hours"),
    measure("hr", "hour", "hours"),
    measure("hrs", "hour", "hours"),
    glued("d", "day", "days"),
    measure("yr", "year", "years"),
    measure("yrs", "year", "years"),
    measure("mph", "mile per hour", "miles per hour"),
    measure("km/h", "kilometer per hour", "kilometers per hour"),
    measure("kph", "kilometer per hour", "kilometers per hour"),
    measure("m/s", "meter per second", "meters per second"),
    measure("rpm", "R P M", "R P M"),
    measure("fps", "frame per second", "frames per second"),
    measure("Hz", "hertz", "hertz"),
    measure("kHz", "kilohertz", "kilohertz"),
    measure("MHz", "megahertz", "megahertz"),
    measure("GHz", "gigahertz", "gigahertz"),
    measure("B", "byte", "bytes"),
    measure("KB", "kilobyte", "kilobytes"),
    measure("kB", "kilobyte", "kilobytes"),
    measure("MB", "megabyte", "megabytes"),
    measure("GB", "gigabyte", "gigabytes"),
    measure("TB", "terabyte", "terabytes"),
    measure("PB", "petabyte", "petabytes"),
    measure("KiB", "kibibyte", "kibibytes"),
    measure("MiB", "mebibyte", "mebibytes"),
    measure("GiB", "gibibyte", "gibibytes"),
    measure("kbps", "kilobit per second", "kilobits per second"),
    measure("Mbps", "megabit per second", "megabits per second"),
    measure("Gbps", "gigabit per second", "gigabits per second"),
    measure("MB/s", "megabyte per second", "megabytes per second"),
    measure("GB/s", "gigabyte per second", "gigabytes per second"),
    measure("W", "watt", "watts"),
    measure("kW", "kilowatt", "kilowatts"),
    measure("MW", "megawatt", "megawatts"),
    measure("GW", "gigawatt", "gigawatts"),
    measure("kWh", "kilowatt hour", "kilowatt hours"),
    measure("V", "volt", "volts"),
    measure("kV", "kilovolt", "kilovolts"),
    measure("mV", "millivolt", "millivolts"),
    measure("mA", "milliamp", "milliamps"),
    measure("mAh", "milliamp hour", "milliamp hours"),
    glued("A", "amp", "amps"),
    measure("Ω", "ohm", "ohms"),
    measure("kcal", "kilocalorie", "kilocalories"),
    measure("cal", "calorie", "calories"),
    measure("J", "joule", "joules"),
    measure("kJ", "kilojoule", "kilojoules"),
    measure("N", "newton", "newtons"),
    measure("Pa", "pascal", "pascals"),
    measure("kPa", "kilopascal", "kilopascals"),
    measure("hPa", "hectopascal", "hectopascals"),
    measure("psi", "P S I", "P S I"),
    measure("dB", "decibel", "decibels"),
    measure("°C", "degree Celsius", "degrees Celsius"),
    measure("°F", "degree Fahrenheit", "degrees Fahrenheit"),
    measure("ºC", "degree Celsius", "degrees Celsius"),
    measure("ºF", "degree Fahrenheit", "degrees Fahrenheit"),
    measure("°", "degree", "degrees"),
    glued("k", "thousand", "thousand"),
    glued("M", "million", "million"),
    glued("bn", "billion", "billion"),
    measure("%", "percent", "percent"),
    measure("‰", "per mille", "per mille"),
    measure("px", "pixel", "pixels"),
    measure("pt", "point", "points"),
    measure("x", "times", "times"),
    glued("×", "times", "times"),
    measure("USD", "US dollar", "US dollars"),
    measure("EUR", "euro", "euros"),
    measure("GBP", "pound", "pounds"),
    measure("JPY", "yen", "yen"),
    measure("CHF", "Swiss franc", "Swiss francs"),
    glued("€", "euro", "euros"),
    glued("£", "pound", "pounds"),
    glued("$", "dollar", "dollars"),
    glued("¢", "cent", "cents"),
    glued("¥", "yen", "yen"),
];

/// Returns the name of the unit `symbol` after a number. `apart` is true if white space stands between the two.
pub(super) fn name(symbol: &str, is_one: bool, apart: bool) -> Option<&'static str> {
    let measure = MEASURES.iter().find(|measure| measure.symbol == symbol && (measure.apart || !apart))?;
    // A lone capital after a space is a name more often than a unit, except for these.
    if apart && symbol.len() == 1 && !"mghlLWV%".contains(symbol) {
        return None;
    }
    Some(if is_one { measure.one } else { measure.many })
}

/// A currency sign before an amount.
#[derive(Debug)]
pub(super) struct Currency {
    sign: &'static str,
    one: &'static str,
    many: &'static str,
    /// Name of a hundredth, singular and plural; empty if the currency has none.
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
    /// Returns the currency whose sign starts `text`, and the rest.
    pub(super) fn parse(text: &str) -> Option<(&'static Self, &str)> {
        CURRENCIES.iter().find_map(|currency| Some((currency, text.strip_prefix(currency.sign)?)))
    }

    /// Returns "dollar" or "dollars".
    pub(super) fn name(&self, is_one: bool) -> &'static str {
        if is_one { self.one } else { self.many }
    }

    /// Returns "cent" or "cents"; `None` if the currency has no hundredths in use.
    pub(super) fn cent(&self, is_one: bool) -> Option<&'static str> {
        Some(self.cent[usize::from(!is_one)]).filter(|name| !name.is_empty())
    }
}

/// Returns the word of a scale of money: "$3 million", "$3M".
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
        for (at, measure) in MEASURES.iter().enumerate() {
            assert!(
                MEASURES[at + 1..].iter().all(|other| other.symbol != measure.symbol),
                "{}",
                measure.symbol
            );
        }
    }
}
