"""Names and sentences to fill with them, written down for this example; what tzdata knows is not repeated here."""

FIRSTS = """
Ada Adam Agnes Alan Albert Alexander Alice Amelia Andrew Angela Anna Anne Anthony Antonio Arthur Barbara Bdale Ben Bernard Bill
Branden Brian Bruce Carl Carlos Carol Caroline Catherine Charles Charlotte Chris Christian Christine Claire Clara Colin Curtis
Daniel David Deborah Dennis Diana Diego Donald Dorothy Edith Edward Elena Elizabeth Emil Emily Emma Eric Erik Ernest Eva Fatima
Felix Fiona Francis Frank Frederick Gabriel George Gerald Grace Gregory Guido Hannah Harold Helen Henry Howard Hugo Ian Ingrid Irene
Isaac Isabel Ivan Jack Jacob James Jane Jason Jean Jennifer Jensen Jeremy Jessica Jim Joan Joanna Joey John Jonathan Jose Joseph
Juan Julia Karen Karl Katherine Kenneth Kevin Kim Klaus Larry Laura Lars Leo Leonard Linda Lisa Louis Lucas Lucy Luis Manuel
Margaret Maria Marie Marion Mark Martha Martin Mary Matthew Mehdi Michael Miguel Neil Nicholas Nicole Nina Nora Oliver Olivia
Oscar Otto Pablo Pamela Patricia Patrick Paul Peter Philip Rachel Raj Ralph Rebecca Richard Robert Roger Roland Ruth Sam Samuel
Sandra Sarah Sean Simon Sofia Sophie Stefan Stefano Stephen Steve Steven Susan Sven Teresa Thomas Tim Timothy Tom Valerie Victor
Victoria Vincent Virginia Walter Wichert William Yuki
""".split()

LASTS = """
Abbott Adams Akerman Allen Anderson Armstrong Bailey Baker Barnes Becker Bell Bennett Berg Black Blum Brandt Brown Bryant Burns
Butler Campbell Carter Chen Clark Clinton Cohen Coleman Collins Cook Cooper Cox Cruz Curie Darwin Davis Diaz Dixon Dubois
Edwards Einstein Ellis Evans Faraday Fischer Fisher Fleming Ford Foster Franklin Garbee Garcia Gates Gauss Gomez Gonzalez Graham
Grant Gray Green Griffin Hall Hamilton Hansen Harris Harrison Hart Hayes Henderson Hill Hoffman Howard Huang Hughes Hunt Jackson
Jacobs James Jefferson Jensen Johnson Jones Jordan Keller Kelly Kennedy Kim King Klein Knight Koch Kumar Lamb Larsen Lee Lewis
Lincoln Lopez Lovelace Madison Malachowsky Marshall Martin Martinez Mason Maxwell Meyer Miller Mitchell Moore Morgan Morris Moser
Mueller Murdock Murphy Murray Nelson Newton Nguyen Nielsen Novak Olsen Owens Parker Patel Payne Perens Perez Perry Peterson
Phillips Porter Powell Priem Ramirez Reed Reyes Reynolds Rice Richards Rivera Roberts Robinson Rogers Ross Rossi Russell Sanchez
Sanders Sato Schmidt Schneider Schulz Scott Shannon Shaw Simpson Smith Spencer Stevens Stewart Stone Suzuki Tanaka Taylor
Thompson Torvalds Towns Turing Turner Tyler Wagner Walker Wallace Ward Washington Watson Weber Webster Wells West Wheeler White
Williams Wilson Winter Wood Wright Yamamoto Young Zhang Zimmermann
""".split()

ORGANISATIONS = [
    "NVIDIA", "IBM", "Intel", "AMD", "Microsoft", "Google", "Apple", "Amazon", "Oracle", "Siemens", "Toyota", "Honda", "Sony", "Nokia",
    "Ericsson", "Philips", "Samsung", "Hitachi", "Boeing", "Airbus", "Lufthansa", "Reuters", "BBC", "CNN", "NASA", "CERN", "UNESCO",
    "Unicef", "NATO", "FBI", "MIT", "Xerox", "Kodak", "Pixar", "HP", "Hewlett Packard", "Sun Microsystems", "Red Hat", "Canonical",
    "Mozilla", "Novell", "SuSE", "Linspire", "Debian", "Debian Project", "FSF", "SPI", "Software in the Public Interest",
    "Free Software Foundation", "Open Source Initiative", "United Nations", "World Bank", "European Union", "European Commission",
    "Red Cross", "General Motors", "General Electric", "Bell Labs", "Volkswagen", "Renault", "Nestle", "Bayer", "Novartis",
    "Stanford University", "Harvard University", "Oxford University", "Real Madrid", "Manchester United", "Ajax",
    "Congress", "Parliament", "Senate", "Progeny", "Conectiva", "Corel", "Xandros", "Yahoo", "Netscape", "Cisco", "Dell", "Motorola",
]

OTHERS = [
    "German", "French", "English", "Spanish", "Italian", "Dutch", "Swedish", "Danish", "Norwegian", "Finnish", "Polish", "Russian",
    "Czech", "Greek", "Turkish", "Arabic", "Hebrew", "Chinese", "Japanese", "Korean", "Indian", "American", "British", "Canadian",
    "Australian", "Brazilian", "Mexican", "African", "Asian", "European", "Swiss", "Austrian", "Hungarian", "Portuguese", "Irish",
    "Christmas", "Easter", "Olympic Games", "World Cup", "Nobel Prize", "Linux", "Unix", "Windows", "Python", "DebConf", "GNU",
    "Buzz", "Rex", "Bo", "Hamm", "Slink", "Potato", "Woody", "Sarge", "Etch", "Lenny", "Squeeze", "Wheezy", "Jessie", "Stretch",
    "Buster", "Bullseye", "GPL", "GNU General Public License", "Debian Social Contract", "Debian Free Software Guidelines",
]

PLACES = [
    "Germany", "California", "Texas", "Florida", "Virginia", "Ohio", "Oregon", "Scotland", "Wales", "England", "Bavaria", "Europe", "Asia",
    "Africa", "Boston", "Seattle", "Munich", "Hamburg", "Cologne", "Geneva", "Lyon", "Bordeaux", "Barcelona", "Milan", "Naples",
    "Manchester", "Liverpool", "Edinburgh", "Oxford", "Cambridge", "Washington", "Mount Vernon", "San Francisco", "Silicon Valley",
    "Portland", "Mexico", "Kyoto", "Osaka", "Beijing", "Bombay", "Santa Clara", "Santa Cruz", "Heidelberg", "Cartagena", "Taipei",
    "United States", "United Kingdom", "USA", "UK", "Bosnia", "Herzegovina",
]

# How the name of a body may end.
BODIES = ["Foundation", "Inc", "Corporation", "University", "Institute", "Association", "Committee", "Group", "Bank", "Society", "Limited"]

# Capitalised at the beginning of a sentence, or a title: never part of a name by themselves.
NO_NAMES = set("The A An This That These Those It In On At By For From With When While Some Many Most All Each Every I We You He She They".split())

MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
FILLERS = {
    "YEAR": lambda choice: str(choice.randint(1790, 2024)),
    "NUMBER": lambda choice: str(choice.randint(2, 900)),
    "MONTH": lambda choice: choice.choice(MONTHS),
    "DAY": lambda choice: choice.choice(DAYS),
    "ROLE": lambda choice: choice.choice("engineer doctor writer minister painter teacher driver pilot spokesman director".split()),
    "THING": lambda choice: choice.choice("book report bridge contract film engine letter painting song program".split()),
}

SENTENCES = [
    "{PER} went to {LOC}.",
    "{PER} went to {LOC} and then to {LOC}, {PER} said.",
    "{PER} was born in {LOC} in {YEAR}.",
    "{PER} lives in {LOC} and works for {ORG}.",
    "{PER}, a {ROLE} from {LOC}, joined {ORG} in {MONTH} {YEAR}.",
    "{ORG} is founded by {PER}, {PER} and {PER}.",
    "{ORG} was founded in {YEAR} by {PER} and {PER} in {LOC}.",
    "{ORG} is a company in {LOC}.",
    "{ORG} said on {DAY} that it will buy {ORG}.",
    "The {THING} was written by {PER}.",
    "The {MISC} {ROLE} {PER} met {PER} in {LOC}.",
    "In {LOC}, {NUMBER} people were waiting for {PER}.",
    "I flew from {LOC} to {LOC} on {DAY}.",
    "We bought a {THING} in {LOC} last {MONTH}.",
    "{PER} of {ORG} won the {MISC}.",
    "She speaks {MISC} and a little {MISC}.",
    "According to {PER}, {ORG} has {NUMBER} employees in {LOC}.",
    "Mr. {PER} told {ORG} that the {THING} was late.",
    "Nobody at {ORG} had heard of {PER}.",
    "He moved from {LOC} to {LOC}, where he worked at {ORG}.",
    "My friend {PER} likes {LOC} in {MONTH}.",
    "It rained in {LOC} all {DAY}.",
    "The {THING} is on the table, next to the {THING}.",
    "There were {NUMBER} of them in {YEAR}.",
    "Nothing happened on {DAY}.",
    "Please send the {THING} to {PER} at {ORG}.",
    "{LOC} is larger than {LOC}.",
    "The president of {LOC}, {PER}, visited {ORG}.",
    "{PER} and {PER} are from {LOC}.",
    "The {MISC} {THING} came from {LOC}.",
    "A {ROLE} of {ORG} wrote a {THING} about {LOC}.",
    "{PER} bought a {MISC} {THING} for {NUMBER} dollars.",
    "{LOC}, {MONTH} {NUMBER}: {PER} leads {ORG}.",
    "Between {LOC} and {LOC} lie {NUMBER} miles.",
    "The {MISC} were first, said {PER}.",
    "{ORG} and {ORG} signed a {THING} in {LOC} on {DAY}.",
]
