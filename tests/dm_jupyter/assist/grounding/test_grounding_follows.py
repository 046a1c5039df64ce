"""What an answer may say of values in other words: spans, quantiles, units, other languages."""

import pandas as pd
import pytest

from dm_jupyter.assist.grounding import ground, unsupported_numbers

QUARTERS = pd.Series(
    [8447.35, 9480.12, 9172.57, 8340.23, 7156.46, 7739.23, 8082.78, 8427.59],
    index=pd.period_range("2023Q1", periods=8, freq="Q"),
    name="revenue",
)
BINS = pd.cut(pd.Series([25] * 18 + [35] * 74 + [45] * 147 + [55] * 157), [20, 30, 40, 50, 60])
SALES = pd.DataFrame(
    {"count": [86, 166, 81], "mean": [173.38, 167.44, 146.59], "median": [137.76, 140.3, 101.46]},
    index=pd.Index(["East", "North", "South"], name="region"),
)
COMPANIES = pd.DataFrame(
    {
        "company": ["Cobalt", "Eiger", "Fjordline"],
        "revenue_musd": [2110.0, 455.9, 310.7],
        "profit_musd": [388.1, 61.3, -12.8],
        "founded": [2003, 1971, 2012],
    }
)
CHANNELS = "\n".join(
    map(str, [("web", 257, 43022.69), ("store", 113, 17840.82), ("phone", 30, 5982.82)])
)
SCORES = pd.DataFrame(
    {"mean_score": [12.5, 17.0], "members": [40, 80]}, index=pd.Index(["A", "B"], name="group")
)
PRICES = pd.DataFrame({"item": ["pen", "book"], "price": [12.5, 17.0], "qty": [40, 80]})
CHURNED = "churned\nNo     78\nYes    42\nName: count, dtype: int64"
MONTHLY = pd.Series([12.5, 17.0], index=["May", "June"], name="mean_temp")
WEEK = "Thu: 1297\nFri: 1620\nSat: 2043\nSun: 1710"
QUANTILES = pd.Series([25.45, 74.3, 132.73, 240.1, 421.87], index=[0.05, 0.25, 0.5, 0.75, 0.95])
STATIONS = pd.DataFrame({"no2": [float(at) for at in range(90)]})
CORRELATIONS = pd.DataFrame(
    [[1.0, 0.53, 0.54], [0.53, 1.0, 0.95], [0.54, 0.95, 1.0]],
    index=["bill", "flipper", "mass"],
    columns=["bill", "flipper", "mass"],
)


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ("The first half of 2023 brought 17,927.", str(QUARTERS)),
        ("In the first half of 2024 revenue was 14,896 (-16.9 % on the first half of 2023).",
         str(QUARTERS)),
        ("Between 40 and 60 there are 304 values, 77 % of them.",
         str(BINS.value_counts().sort_index())),
        ("On the weekend 3,753 came, on Thursday 1,297.", WEEK),
        ("The medians of East and North lie 2.54 apart.", str(SALES)),
        ("Cobalt has a revenue of $2.11 billion.", str(COMPANIES)),
        ("90 % of orders lie between 25.45 and 421.87.", str(QUANTILES)),
        ("The 95th percentile is 421.87, the upper quartile 240.10.", str(QUANTILES)),
        ("Der Umsatz der Eiger beträgt 455,9 Mio., der Gewinn 61,3.", str(COMPANIES)),
        ("Il y a 14 368 000 habitants.", "habitants: 14368000"),
        ("The p-value is 1.06 × 10⁻⁷, far below 0.001.", "p = 1.06e-07"),
        ("A web order is worth 167.40 each, 43,022.69 in all.", CHANNELS),
        ("Mass explains 90 % of the variance in flipper length.", str(CORRELATIONS)),
        ("It takes 4 MB.", "size_kb: 4096"),
        ("Of 250,000 62,500 are left.", "budget: 250000\nspent: 187500"),
        ("62,500 are left.", "budget: 250000\nspent: 187500"),
        ("At 450 a month that is 5,400 a year.", "monthly rent: 450"),
        ("A flat of 70 m² costs about 1,323.", "rent per m2: 18.9"),
        ("About 1 in 12 comes back.", "return rate: 0.0801"),
        ("It rose from 5.0 to 8.3 million.", "before: 5008000\nafter: 8330000"),
        ("Sales were $3, $4, and $5 million.", "2021 3000000\n2022 4000000\n2023 5000000"),
        ("Accuracy is 82.4 % (± 1.8).", "accuracy 0.824 sd 0.018"),
        ("F(2, 12) = 19.08.", "F = 19.081"),
        ("35 % of the customers churned, 65 % did not.", CHURNED),
        ("35 % of the customers churned.", CHURNED.replace("78", "65").replace("42", "35")),
        ("42 customers churned, 42 % of them in May.", CHURNED + "\n\nshare in May: 42 %"),
        ("North sold 42 million.", "in millions:\n\nNorth 42"),
        ("North sold 42.5 million.", "North 42.5"),
        ("Both sold 120 million.", "in Mio. Euro\n\nNorth 42\nSouth 78"),
        ("The mean score of group A is 12.5, of 40 members.", str(SCORES)),
        ("The pen has a price of 12.5 and 40 were sold.", str(PRICES)),
        ("The price of the 40 pens is 12.5 each.", str(PRICES)),
        ("The book has the higher price with 80 units sold.", str(PRICES)),
        ("On average, the groups have 60 members.", str(SCORES)),
        ("The mean of May and June is 14.75.", MONTHLY.to_string()),
        ("The average price of pen and book is 14.75.", str(PRICES)),
    ],
)  # fmt: skip
def test_what_follows_is_not_doubted(answer: str, output: str) -> None:
    assert unsupported_numbers(answer, output.split("\n\n")) == ()


@pytest.mark.parametrize(
    ("answer", "output", "doubted"),
    [
        ("The first half of 2023 brought 18,652.", str(QUARTERS), "18,652"),
        ("Between 50 and 60 there are 147 values.", str(BINS.value_counts().sort_index()), "147"),
        ("On Thursday 1,620 came.", WEEK, "1,620"),
        ("East's median is 137.76 and South's 146.59.", str(SALES), "146.59"),
        ("East has the highest median with 137.76.", str(SALES), "137.76"),
        ("Fjordline made a profit of 12.8 million.", str(COMPANIES), "12.8 million"),
        ("Cobalt was founded in 2012.", str(COMPANIES), "2012"),
        ("The 95th percentile is 240.10.", str(QUANTILES), "240.10"),
        ("Der Gewinn der Cobalt beträgt 61,3 Mio.", str(COMPANIES), "61,3 Mio"),
        ("Store revenue is 5,982.82.", CHANNELS, "5,982.82"),
        ("Bill and flipper length correlate at 0.95.", str(CORRELATIONS), "0.95"),
        ("Web brought in 64.4k.", "web share: 64.4%", "64.4k"),
        ("Sales grew by 11.4 %.", "change: -0.114", "11.4 %"),
        ("It rose from 19 to 40.", "a: 59\nb: 40", "19"),
        ("There are 90 rows and 7 columns.", "(90, 1)\na: 7", "7"),
        ("42 % of the customers churned.", CHURNED, "42 %"),
        ("The share of churned customers is 42 %.", CHURNED, "42 %"),
        ("A is 12.5 % of the data.", str(SCORES), "12.5 %"),
        ("Sales are 42 million.", "sales 42", "42 million"),
        ("Sales are $42k.", "sales 42", "42k"),
        ("Sales are 42 billion.", "sales in millions: 42", "42 billion"),
        ("Both sold 120 million.", "North 42\nSouth 78", "120 million"),
        ("Group A has a mean score of 40.", str(SCORES), "40"),
        ("The price of the book is 80.", str(PRICES), "80"),
        ("The overall mean is 14.75.", str(SCORES), "14.75"),
        ("A has a mean of 12.5, B of 17.0, so the overall mean is 14.75.", str(SCORES), "14.75"),
        ("On average, 15 % churned.", "churn rate A: 0.1\nchurn rate B: 0.2", "15 %"),
        ("Good stones weigh 0.81.", "cut,carat\nGood,0.85\nVery Good,0.81", "0.81"),
    ],
)
def test_a_figure_of_another_thing_is_doubted(answer: str, output: str, doubted: str) -> None:
    assert doubted in unsupported_numbers(answer, [output])


@pytest.mark.parametrize("level", ["0.0001", "0.001", "0.01", "0.05", "0.1"])
def test_a_usual_level_of_significance_is_no_result(level: str) -> None:
    answer = f"It holds at the {level} level, with p < {level}."
    assert unsupported_numbers(answer, ["p = 0.00000001"]) == ()
    assert unsupported_numbers(f"The share is {level}.", ["p = 0.00000001"]) == (level,)


@pytest.mark.parametrize("level", ["1 %", "5 %", "10 %", "90 %", "95 %", "99 %"])
def test_a_usual_level_of_confidence_is_no_result(level: str) -> None:
    assert unsupported_numbers(f"At the {level} level it holds.", []) == ()
    assert unsupported_numbers(f"The {level} confidence interval is wide.", []) == ()
    assert unsupported_numbers(f"{level} of them came.", []) == (level,)


CLASSES = pd.Series([0.63, 0.47, 0.24], index=pd.Index([1, 2, 3], name="class"), name="survived")


@pytest.mark.parametrize(
    ("answer", "doubted"),
    [
        ("In third class 24 % survived.", ()),
        ("In the 3rd class 24 % survived.", ()),
        ("In class 3 24 % survived, in class 1 63 %.", ()),
        ("First class has a rate of 0.63, the second one of 0.47.", ()),
        ("In first class 24 % survived.", ("24 %",)),
        ("In the 1st class 24 % survived.", ("24 %",)),
        ("In class 1 24 % survived.", ("24 %",)),
    ],
)
def test_a_class_is_called_by_its_number_or_its_place(
    answer: str, doubted: tuple[str, ...]
) -> None:
    assert unsupported_numbers(answer, [str(CLASSES)]) == doubted


@pytest.mark.parametrize(
    ("label", "right", "wrong"),
    [
        ("mass (kg)", "5 kg", "5 g"),
        ("mass_kg", "5,000 g", "5 g"),
        ("mass [g]", "5 g", "5 kg"),
        ("height_m", "5 m", "5 cm"),
        ("height_m", "500 cm", "5 km"),
        ("delay_min", "5 minutes", "5 hours"),
        ("mean delay min", "300 seconds", "5 seconds"),
        ("temp_c", "5 °C", "5 °F"),
        ("price_usd", "$5", "€5"),
        ("price_eur_t", "€5", "$5"),
        ("share_pct", "5 %", "5 kg"),
        ("size_kb", "5,120 bytes", "5 MB"),
        ("revenue_musd", "$5 million", "$5 billion"),
        ("revenue_musd", "$5,000 thousand", "$5 thousand"),
        ("revenue (bn)", "5 billion", "5 million"),
        ("duration (h)", "300 minutes", "5 minutes"),
        ("kg_per_head", "5 kg", "5 m"),
    ],
)
def test_a_label_says_the_unit_of_its_value(label: str, right: str, wrong: str) -> None:
    assert unsupported_numbers(f"It is {right}.", [f"{label}: 5"]) == ()
    assert unsupported_numbers(f"It is {wrong}.", [f"{label}: 5"]) != ()


@pytest.mark.parametrize(
    ("label", "value", "said"),
    [
        ("power_kw", 5_000, "5 MW"), ("power_mw", 5_000, "5 GW"), ("power_gw", 5, "5,000 MW"),
        ("energy_wh", 5_000, "5 kWh"), ("energy_kwh", 5_000, "5 MWh"),
        ("energy_gwh", 5, "5,000 MWh"),
        ("volume_ml", 5_000, "5 litres"), ("volume_l", 5, "5,000 ml"),
        ("size_mb", 5, "5,120 kB"), ("size_gb", 5, "5,120 MB"), ("size_tb", 5, "5,120 GB"),
        ("length_mm", 50, "5 cm"), ("length_cm", 500, "5 metres"), ("length_m", 5_000, "5 km"),
        ("distance_km", 5, "5,000 meters"), ("distance_mile", 5, "8.05 km"),
        ("length_inch", 5, "12.7 cm"), ("height_ft", 5, "1.52 metres"),
        ("mass_mg", 5_000, "5 g"), ("mass_g", 5_000, "5 kilograms"), ("mass_kg", 5_000, "5 tonnes"),
        ("mass_lb", 5, "2.27 kg"), ("mass_t", 5, "5,000 kg"),
        ("time_ms", 5_000, "5 seconds"), ("time_s", 300, "5 minutes"), ("time_h", 5, "300 minutes"),
        ("time_day", 5, "120 hours"), ("time_week", 5, "35 days"), ("age_year", 5, "60 months"),
        ("price_cent", 500, "$5"), ("price_usd", 5, "500 cents"),
    ],
)  # fmt: skip
def test_a_value_may_be_stated_in_another_unit(label: str, value: int, said: str) -> None:
    assert unsupported_numbers(f"It is {said}.", [f"{label}: {value}"]) == ()
    assert unsupported_numbers(f"It is {said}.", [f"{label}: {value * 3}"]) != ()


def test_a_share_rises_by_points_or_by_a_part_of_itself() -> None:
    output = "share before: 10.0 %\nshare after: 12.5 %"
    for points in ("2.5 percentage points", "2.5 % points", "2.5 points", "2.5 pp"):
        assert unsupported_numbers(f"The share rose by {points}.", [output]) == ()
    assert unsupported_numbers("The share rose by 25 %.", [output]) == ()
    assert unsupported_numbers("The share rose by 2.5 %.", [output]) == ("2.5 %",)
    assert unsupported_numbers("The share rose by 25 points.", [output]) == ("25",)


def test_rows_that_are_left_out_are_no_labels() -> None:
    with pd.option_context("display.max_rows", 6):
        output = str(STATIONS)
    assert "..." in output or ".." in output
    assert unsupported_numbers("5 of 90 stations are above the limit.", [output, "5"]) == ()
    assert unsupported_numbers("5 of 99 stations are above the limit.", [output, "5"]) == ("99",)


def test_a_day_is_named_in_words_or_digits() -> None:
    close = pd.Series([185.1, 179.6], index=pd.to_datetime(["2024-03-05", "2024-03-06"]))
    for day in ("5 March", "March 5", "5 March 2024", "2024-03-05"):
        assert unsupported_numbers(f"On {day} it closed at 185.1.", [str(close)]) == ()
        assert unsupported_numbers(f"On {day} it closed at 179.6.", [str(close)]) == ("179.6",)


def test_dictionaries_are_tables_however_they_are_broken() -> None:
    for output in (
        "{'train': {'rows': 8000, 'rmse': 3.21}, 'test': {'rows': 2000, 'rmse': 3.87}}",
        "[{'set': 'train', 'n': 8000, 'rmse': 3.21}, {'set': 'test', 'n': 2000, 'rmse': 3.87}]",
        '{\n  "train": {\n    "rows": 8000,\n    "rmse": 3.21\n  },\n'
        '  "test": {\n    "rows": 2000,\n    "rmse": 3.87\n  }\n}',
    ):
        assert unsupported_numbers("The test RMSE is 3.87, 0.66 higher.", [output]) == ()
        assert unsupported_numbers("The train RMSE is 3.87.", [output]) == ("3.87",)


def test_a_number_is_told_as_it_is_written() -> None:
    (found,) = ground("Der Gewinn beträgt 61,4 Mio.", [str(COMPANIES)])
    assert (found.text, found.is_doubtful) == ("61,4 Mio", True)


@pytest.mark.parametrize(
    "told",
    [
        "- 'revenue_musd': int, 12 distinct",
        "- 'revenue (in millions)': int",
        "Umsatz in Mio. EUR",
        "print((df.revenue.sum() / 1e6).round())",
        "df.revenue.sum() // 1_000_000",
        "df.revenue.sum().div(1_000_000)",
        "total_m = 42",
        "revenue (m)",
    ],
)
def test_a_scale_may_be_named_by_the_data_the_cells_or_the_question(told: str) -> None:
    answer = "Sales are 42 million."
    assert [one.is_doubtful for one in ground(answer, ["42"], told=[told])] == [False]
    assert unsupported_numbers(answer, ["42"], told) == ()
    assert unsupported_numbers("Sales are 42 billion.", ["42"], told) == ("42 billion",)
