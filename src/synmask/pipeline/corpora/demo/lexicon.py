"""The lexicon of the demo corpus: words of both languages, entries separated by commas."""

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Noun(NamedTuple):
    kind: str
    german: str
    gender: str  # m, f, n, or w: masculine with the plural's form in all cases but the nominative
    plural: str
    english: str
    english_plural: str


class Verb(NamedTuple):
    frame: str
    particle: str  # separable, or ""
    infinitive: str
    third: str  # er …
    participle: str
    auxiliary: str  # of the perfect
    english: str
    past: str
    preposition: tuple[str, str, str] | None  # German, its case, English; of the frame "prepositional"


def _entries(table: str) -> list[tuple[str, ...]]:
    return [tuple(entry.split()) for entry in table.split(",")]


def _by_kind(build: Callable, tables: Mapping[str, str]) -> dict[str, list]:
    return {kind: [build(kind, *entry) for entry in _entries(table)] for kind, table in tables.items()}


def _noun(kind: str, german: str, gender: str, plural: str, english: str) -> Noun:
    singular, _, irregular = english.partition("/")
    return Noun(kind, german, gender, plural, singular, irregular or with_s(singular))


def _verb(
    frame: str, german: str, third: str, participle: str, english: str, past: str, *preposition: str
) -> Verb:
    particle, _, infinitive = german.rpartition("+")
    auxiliary = "sein" if participle.startswith("*") else "haben"
    participle = participle.removeprefix("*")
    return Verb(frame, particle, infinitive, third, participle, auxiliary, english, past, preposition or None)


def with_s(english: str) -> str:
    """The regular plural of a noun, the third person of a verb."""
    if english[-1] == "y" and english[-2] not in "aeiou":
        return english[:-1] + "ies"
    return english + ("es" if english.endswith(("s", "x", "ch", "sh", "o")) else "s")


# German, gender, plural, English (with an irregular plural after the slash)
NOUNS = _by_kind(
    _noun,
    {
        "person": """
        Mann m Männer man/men, Frau f Frauen woman/women, Kind n Kinder child/children, Lehrer m Lehrer
        teacher, Arzt m Ärzte doctor, Koch m Köche cook, Nachbar w Nachbarn neighbour, Student w Studenten
        student, Junge w Jungen boy, Mädchen n Mädchen girl, Bruder m Brüder brother, Schwester f
        Schwestern sister, Freund m Freunde friend, Polizist w Polizisten policeman/policemen, König m
        Könige king, Tochter f Töchter daughter, Hund m Hunde dog, Katze f Katzen cat, Gärtner m Gärtner
        gardener""",
        "thing": """
        Buch n Bücher book, Schlüssel m Schlüssel key, Brief m Briefe letter, Apfel m Äpfel apple, Lampe f
        Lampen lamp, Bild n Bilder picture, Stuhl m Stühle chair, Rad n Räder wheel, Tür f Türen door,
        Tisch m Tische table, Uhr f Uhren clock, Karte f Karten map""",
        "place": """
        Haus n Häuser house, Wald m Wälder forest, Laden m Läden shop, Park m Parks park, Turm m Türme
        tower, Saal m Säle hall, Hof m Höfe yard, Brunnen m Brunnen well, Schule f Schulen school, Kirche
        f Kirchen church, Dorf n Dörfer village, Zimmer n Zimmer room""",
        "optics": """
        Fernrohr n Fernrohre telescope, Kamera f Kameras camera, Lupe f Lupen lens, Spiegel m Spiegel
        mirror""",
        "wear": """
        Hut m Hüte hat, Mantel m Mäntel coat, Tasche f Taschen bag, Ring m Ringe ring, Schirm m Schirme
        umbrella""",
    },
)
COMPOUNDS = _entries("""
        Garten garden, Küchen kitchen, Stadt city, Winter winter, Holz timber, Gold gold, Nacht night,
        Reise travel, Berg mountain, Land country, Kloster abbey, Hafen harbour, Bahnhofs station, Theater
        theatre, Schiffs ship, Insel island, Markt market, Sonntags Sunday, Fabrik factory, Glas glass,
        Schloss castle, Familien family""")
ADJECTIVES = {
    True: _entries("""
        alt old, jung young, klein small, groß big, müde tired, arm poor, reich rich, stark strong, ruhig
        quiet, traurig sad, stolz proud, freundlich friendly, glücklich happy, klug wise, bekannt known,
        beliebt popular"""),
    False: _entries("""
        alt old, neu new, klein small, groß big, schön beautiful, seltsam strange, sicher safe, wichtig
        important, bekannt known, beliebt popular, sichtbar visible"""),
}  # of people, of things
UN = {"freundlich", "glücklich", "klug", "sicher", "wichtig", "bekannt", "beliebt"}  # take un- on both sides
COLOURS = _entries("rot red, grün green, blau blue, braun brown, grau grey")
SHADES = (("", ""), ("dunkel", "dark "), ("hell", "light "))
# German (particle+verb), er-form, participle (* with sein), English, past, [preposition, case, English]
VERBS = _by_kind(
    _verb,
    {
        "intransitive": """
        lachen lacht gelacht laugh laughed, schlafen schläft geschlafen sleep slept, arbeiten arbeitet
        gearbeitet work worked, singen singt gesungen sing sang, tanzen tanzt getanzt dance danced,
        auf+wachen wacht *gewacht wake woke, an+kommen kommt *gekommen arrive arrived, zurück+kommen kommt
        *gekommen return returned, auf+stehen steht *gestanden rise rose""",
        "thing": """
        kaufen kauft gekauft buy bought, verkaufen verkauft verkauft sell sold, tragen trägt getragen
        carry carried, auf+machen macht gemacht open opened, zu+machen macht gemacht close closed,
        mit+nehmen nimmt genommen take took, an+nehmen nimmt genommen accept accepted, ab+holen holt
        geholt collect collected, malen malt gemalt paint painted, stehlen stiehlt gestohlen steal stole,
        auf+heben hebt gehoben lift lifted, weg+werfen wirft geworfen discard discarded, verstecken
        versteckt versteckt hide hid""",
        "person": """
        an+rufen ruft gerufen call called, besuchen besucht besucht visit visited, treffen trifft
        getroffen meet met, fragen fragt gefragt ask asked, ein+laden lädt geladen invite invited,
        aus+lachen lacht gelacht mock mocked, vor+stellen stellt gestellt introduce introduced, heiraten
        heiratet geheiratet marry married""",
        "perception": """
        sehen sieht gesehen see saw, beobachten beobachtet beobachtet observe observed, an+sehen sieht
        gesehen view viewed, finden findet gefunden find found, entdecken entdeckt entdeckt discover
        discovered""",
        "state": """
        kennen kennt gekannt know knew, lieben liebt geliebt love loved, hassen hasst gehasst hate hated,
        brauchen braucht gebraucht need needed, vermissen vermisst vermisst miss missed, vor+ziehen zieht
        gezogen prefer preferred""",
        "dative": """
        helfen hilft geholfen help helped, danken dankt gedankt thank thanked, folgen folgt *gefolgt
        follow followed, vertrauen vertraut vertraut trust trusted, nach+laufen läuft *gelaufen chase
        chased""",
        "ditransitive": """
        geben gibt gegeben give gave, zeigen zeigt gezeigt show showed, schicken schickt geschickt send
        sent, leihen leiht geliehen lend lent, an+bieten bietet geboten offer offered""",
        "motion": """
        gehen geht *gegangen go went, laufen läuft *gelaufen run ran, fahren fährt *gefahren drive drove,
        springen springt *gesprungen jump jumped, ein+brechen bricht *gebrochen break broke""",
        "prepositional": """
        warten wartet gewartet wait waited auf acc for, denken denkt gedacht think thought an acc about,
        lachen lacht gelacht laugh laughed über acc at, träumen träumt geträumt dream dreamed von dat of,
        nach+denken denkt gedacht reflect reflected über acc on, auf+passen passt gepasst watch watched
        auf acc over""",
        "place": "liegen liegt gelegen lie lay, stehen steht gestanden stand stood",
        "that": """
        glauben glaubt geglaubt believe believed, sagen sagt gesagt say said, hoffen hofft gehofft hope
        hoped, behaupten behauptet behauptet claim claimed, ein+sehen sieht gesehen realise realised""",
        "infinitive": """
        versuchen versucht versucht try tried, planen plant geplant plan planned, an+fangen fängt gefangen
        begin began, vergessen vergisst vergessen forget forgot""",
        "copula": "sein ist *gewesen be was",
    },
)
FORMS = {  # ich, er, sie (plural) of the irregular verbs
    "sein": ("bin", "ist", "sind"),
    "haben": ("habe", "hat", "haben"),
    "werden": ("werde", "wird", "werden"),
    "können": ("kann", "kann", "können"),
    "müssen": ("muss", "muss", "müssen"),
    "sollen": ("soll", "soll", "sollen"),
}
MODALS = {"werden": "will", "können": "can", "müssen": "must", "sollen": "should"}
PRONOUNS = (  # German, English, person: 0 ich, 1 er, 2 sie (plural), as in FORMS
    ("ich", "I", 0),
    ("er", "he", 1),
    ("sie", "she", 1),
    ("wir", "we", 2),
    ("sie", "they", 2),
)
CONJUNCTIONS = (("und", "and"), ("aber", "but"), ("denn", "for"))
ADVERBS = {  # by tense
    "present": (("heute", "today"), ("oft", "often"), ("immer", "always"), ("jetzt", "now")),
    "perfect": (("gestern", "yesterday"), ("oft", "often"), ("damals", "then"), ("zweimal", "twice")),
    "modal": (("morgen", "tomorrow"), ("bald", "soon"), ("heute", "today"), ("wieder", "again")),
}
SUBORDINATORS = (
    ("weil", "because"),
    ("wenn", "when"),
    ("obwohl", "although"),
    ("während", "while"),
    ("bevor", "before"),
    ("nachdem", "after"),
)
DETERMINERS = {  # German → English singular, plural
    "der": ("the", "the"),
    "ein": ("a", ""),
    "kein": ("no", "no"),
    "mein": ("my", "my"),
    "unser": ("our", "our"),
    "dieser": ("this", "these"),
    "jeder": ("every", ""),
}
ENDINGS = {  # of determiners: m f n plural
    "nom": dict(m="er", f="e", n="es", pl="e"),
    "acc": dict(m="en", f="e", n="es", pl="e"),
    "dat": dict(m="em", f="er", n="em", pl="en"),
    "gen": dict(m="es", f="er", n="es", pl="er"),
}
BARE = {("nom", "m"), ("nom", "n"), ("acc", "n")}  # where ein, kein, mein, unser take no ending
WEAK_E = BARE | {("nom", "f"), ("acc", "f")}  # where a weak adjective ends in -e, elsewhere in -en
CONTRACTIONS = {("in", "dem"): "im", ("in", "das"): "ins", ("von", "dem"): "vom"}
