//! The vocabulary of books and reviews.
//!
//! Each list is ordered: texts with a narrow vocabulary use only its start.

pub(crate) const NOUNS: &str = "story reader chapter author history book voice argument character scene century \
city family language memory journey question evidence winter house river village letter war garden science \
machine island harbour window morning silence theory number kitchen market forest mountain engine stranger \
daughter brother teacher captain neighbour merchant soldier doctor painter archive parliament railway \
cathedral bridge lighthouse orchard telescope manuscript map photograph newspaper diary kingdom empire \
republic border custom ritual weather storm drought harvest famine plague cure discovery experiment \
instrument melody orchestra theatre canvas sculpture pottery loom thread fabric copper iron glass timber \
stone marble clay salt sugar coffee spice wheat barley cattle horse falcon whale salmon beetle moth fern \
moss oak willow meadow valley glacier desert canyon delta reef lagoon current tide compass anchor sail \
lantern candle hearth cellar attic staircase corridor courtyard balcony tower wall gate path crossroads \
inn tavern bakery workshop foundry mill quarry mine tunnel canal dam reservoir aqueduct fountain well \
alphabet grammar proverb riddle legend myth prophecy oath treaty charter law verdict trial witness judge \
prisoner rebel exile pilgrim monk abbot bishop saint heretic scholar librarian printer bookseller clerk \
banker tailor cobbler blacksmith carpenter mason sailor fisherman shepherd hunter gardener beekeeper nurse \
midwife surgeon chemist botanist geologist astronomer mathematician philosopher poet novelist critic editor \
translator actor dancer singer violinist composer conductor architect engineer inventor explorer navigator \
cartographer diplomat spy smuggler thief detective orphan widow bride cousin uncle grandmother ancestor heir \
fortune debt wage tax coin ledger auction inheritance rumour secret promise betrayal quarrel duel apology \
courtship marriage funeral festival carnival procession banquet recipe supper appetite hunger thirst fever \
dream nightmare illusion paradox hypothesis proof equation geometry symmetry pattern texture colour shadow \
reflection echo rhythm cadence metaphor irony satire tragedy comedy plot subplot prologue epilogue footnote \
index bibliography glossary preface illustration engraving watercolour portrait landscape horizon constellation \
planet comet eclipse gravity magnet spark flame ash smoke fog frost thaw avalanche earthquake volcano \
hurricane flood wreck rescue voyage expedition caravan passport luggage platform timetable carriage bicycle \
airship telegraph telephone wireless battery circuit signal cipher code puzzle chessboard card dice wager";

pub(crate) const ADJECTIVES: &str = "long small quiet clear early careful human rich modern simple old dark young honest \
patient strange vivid gentle sharp brief ancient narrow bright hidden bitter curious deep empty faithful \
generous golden harsh idle lonely lucid magnificent modest muted noble obscure ordinary pale plain polite \
proud rare reluctant restless ruined scattered secret severe shallow silent sincere slender solemn sombre \
splendid steady stern stubborn sudden tender thorough tidy tireless uneasy unlikely urgent vast wary weary \
wild wise witty abrupt absorbing abundant accurate affectionate agile alert ambitious amiable ample amusing \
anonymous anxious ardent arid artful astute austere awkward barren blunt boisterous bold brittle broad \
brutal bustling calm candid capable casual cautious charming cheerful civil clever clumsy coarse coherent \
colonial compact compelling complex concise confident conscious constant cordial courageous crisp crude \
cunning dazzling decent decisive delicate dense desolate devoted dignified diligent dim diplomatic discreet \
distant divided domestic dramatic dreary dull durable dusty eager earnest eccentric eerie elaborate elegant \
eloquent elusive eminent enduring energetic enigmatic epic erudite essential exact exotic exquisite faint \
familiar fanciful fatal feeble fertile fierce fiery fluent foggy foreign formal fragile frank frugal furious \
genial genuine gloomy graceful gracious grand grave grim hasty haunting hearty heroic hollow humble humorous \
icy imaginative impartial imperial impressive incisive indifferent industrial ingenious innocent inquisitive \
insular intimate intricate inventive ironic jagged jovial joyful keen laborious lavish lean legendary lively \
lofty loyal luminous lush lyrical maritime meagre measured medieval mellow melancholy meticulous mild misty \
mournful mysterious nautical neat nervous nimble nocturnal nostalgic oblique ominous opaque opulent orderly \
ornate outspoken passionate peculiar pensive perceptive perilous persuasive playful poignant polished \
practical precise prosperous provincial prudent puzzling quaint radiant ragged remote resilient resolute \
reverent rigorous robust romantic rough rugged rural rustic sardonic scenic sceptical scholarly secluded \
sensible serene shrewd singular sleepy slow sober spare spirited sprawling stark stately stirring subtle \
sumptuous supple swift tangled tense terse timid tranquil treacherous turbulent unfinished unhurried urban \
vague valiant vibrant vigorous vulnerable warm whimsical wistful";

pub(crate) const VERBS: &str = "follows finds tells keeps shows opens leaves brings turns draws gives holds explains \
describes reveals remembers questions defends rebuilds abandons admires alters answers arranges avoids \
balances blames borrows buries carries celebrates challenges chooses collects compares conceals condemns \
confronts connects conquers considers contradicts corrects crosses cultivates deciphers dedicates delays \
denies deserves destroys discovers dismisses disturbs divides dominates doubts embraces endures enriches \
escapes examines exchanges exposes fears forgets forgives frames gathers governs guards haunts hides honours \
ignores illuminates imagines imitates inherits inspires interrupts invents investigates invites judges \
justifies lacks laments measures mends misses mistrusts mourns narrates neglects notices observes obtains \
offers outlives overlooks paints pardons persuades pities portrays praises preserves protects provokes \
pursues rebukes recalls recovers refuses regrets rejects releases repairs replaces resembles resists restores \
retraces rewards ridicules salvages scorns seeks shapes shelters silences sketches solves studies summons \
surrounds survives tests threatens tolerates traces transforms translates traverses treasures unites unravels \
uncovers values visits wastes watches welcomes withholds witnesses worships yields";

pub(crate) const ADVERBS: &str = "slowly quietly rarely always carefully often never clearly gently almost boldly \
briefly calmly closely coldly deeply dimly eagerly easily evenly fairly faithfully finally firmly frankly \
freely gladly gradually gravely happily harshly hastily honestly humbly idly keenly kindly loosely loudly \
merely mildly modestly neatly nearly nobly oddly openly patiently plainly politely poorly precisely promptly \
proudly purely rapidly readily recently roughly sadly safely secretly seldom severely shyly simply solemnly \
steadily sternly strangely strictly suddenly swiftly tenderly thoroughly tirelessly truly usually utterly \
vaguely vividly warmly wearily wisely";

pub(crate) const PLACES: &str = "Lisbon Krakow Bergen Ghent Salamanca Trieste Galway Uppsala Leipzig Bologna Toledo \
Antwerp Riga Tartu Odense Bruges Ravenna Porto Cadiz Marseille Valletta Smyrna Aleppo Tabriz Samarkand \
Bukhara Kashgar Lahore Madras Calcutta Malacca Batavia Macao Nagasaki Kyoto Sapporo Hobart Dunedin Valparaiso \
Cusco Bahia Havana Veracruz Savannah Halifax Quebec Reykjavik Tromso Archangel Kazan Odessa Varna Corfu \
Palermo Tunis Fez Timbuktu Zanzibar Mombasa Durban";

pub(crate) const FIRST: &str = "Anna Martin Helen Peter Clara Thomas Ruth Daniel Marta Simon Alice Victor Nora Hugo Irene \
Oscar Julia Felix Agnes Edgar Sofia Walter Greta Arthur Elena Bruno Maud Conrad Ingrid Leon Esther Rupert \
Beatrix Otto Winifred Cyril Paula Magnus Odile Gilbert Lena Tobias Rosa Emil Viola Sigrid Anselm Carmen \
Desmond Flora Gideon Hester Ivor Judith Klaus Lydia Miriam Nils Olga Philip Rhoda Stefan Thea Ursula Yves";

pub(crate) const LAST: &str = "Keller Morgan Lindqvist Harrow Okafor Petrov Ashdown Vermeer Castell Novak Brandt Ferrer \
Hollis Ivanova Jansen Kowalski Larkin Marchetti Nakamura Olsen Pryce Quiroga Rosen Sandoval Tanaka Ueda \
Vasquez Whitlock Xanthos Yardley Zeller Abbott Bellamy Cardew Dunmore Ellery Fairfax Goldwin Hargreave Innes \
Jessop Kirkby Lovell Maddox Northcott Osgood Pemberton Radcliffe Selwyn Thackery Underhill Vance Wycliffe \
Amsel Bergstrom Cortese Dubois Eriksen Fontaine Grimaldi Hoffmann Isaksen Jablonski Kessler Lombardi";

pub(crate) const HOUSES: &str = "Meridian Harbour Northgate Lantern Fieldstone Quill Ashgrove Paragon Tidewater Compass \
Foxglove Granary Hawthorn Ivory Juniper Kestrel Larchwood Millrace Oakleaf Pennant";

pub(crate) const SUBJECTS: &str = "History Biography Travel Fiction Poetry Science Nature Music Art Philosophy Engineering \
Medicine Economics Law Cookery Crime Drama Essays Geography Linguistics";
