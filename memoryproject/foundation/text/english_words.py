"""English words by how informative they are about a text's topic."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Grammar, question words, greetings and thanks: they occur in any text and name no topic.
FUNCTION = _words(
    """
a about above after again all also am an and another any anyone anybody anything are aren't as
at be because been before being below between both but by can can't cannot could couldn't did
didn't do does doesn't doing don't down during each either else even ever every few for from
further far get gets give gives go goes going gonna got had hadn't has hasn't have haven't having he
he'd he'll he's her here hers herself him himself his how how's however i i'd i'll i'm i've if
in instead into is isn't it it's its itself just let let's like many may maybe me might more
most much must my myself neither no nor not now of off on once one only or other our ours
ourselves out over own per please quite rather really same shall she she'd she'll she's should
shouldn't since so some someone somebody something such than that that's the their theirs them
themselves then there there's these they they'd they'll they're they've this those though
through to too under until up upon us very via was wasn't we we'd we'll we're we've were weren't
what what's whatever when when's where where's whether which while who who's whom whose why
why's will with within without won't would wouldn't yes yet you you'd you'll you're you've your
yours yourself ok okay hi hello hey thanks thank thx bye goodbye morning evening night good
great nice cool fine well sure yeah yep nope lol haha welcome cheers sorry wow oh ah hmm um bro
dude sir madam im ive dont doesnt didnt isnt whats thats cant wont hows wheres whos ill theyre
youre best lot pls plz ur anymore tho gonna wanna
    """
)

# Verbs of knowing and saying, and time words: they ask for known facts, but name no topic.
VAGUE = _words(
    """
status situation state tell know knows known remember remembers remind reminds recall say says
said ask asks asked talk talks speak mention mentioned explain describe show shows find look see
check news update updates updated info information detail details data note notes fact facts
thing things stuff happen happens happened happening matter issue question answer answers idea
latest current currently recent recently today tomorrow yesterday tonight time times day days
week weeks month months year years ago soon later still already always never sometimes usually
often back way kind sort type lot bit place people person guy guys man woman need needs want
wants help helping think thinks thought believe feel feels seem seems mean means make makes made
take takes took come comes came use uses used using put keep keeps start end new old able going
concerning regarding previously anyway forget forgot wonder wondering everything nothing everyone
nobody somewhere exactly actually
    """
)

# Common words of daily life and trade. A word in no list is rare, so likely a name or a topic.
COMMON = _words(
    """
account accounts address agency agree agreed amount app appointment area arrive available
average bad bag bank baby bath bed best better big bill birthday book born bottle box boy break
bring brother build building business busy buy call called car card care carry case cash cat
center central change charge cheap check child children choose city class clean client close
closed closing clothes coffee cold color colour company complete computer contact contract cook
corner cost costs country course credit cup customer cut daily dance date daughter deal decide
deliver delivery department deposit desk developer different difficult dinner director discount
discuss dog door drink drive early easy eat email employee enjoy enough enter event expensive
experience eye face family fast father favourite favorite fee feed feel fill first fish fix
floor follow food foot form free friend front fruit full fun game garden girl glass goal group
grow guest hair half hand happy hard head health hear heart heavy high hobby holiday home hope
hospital hot hotel hour hours house husband important include inside interest invoice invoices
item job join key kid kids kitchen lake land language large last late lawyer lead learn leave
lesson letter level life light line list listen little live location long lose love low lunch
machine mail main manager market marry material meal meat medical medicine meet meeting member
menu message middle milk minute mobile money mother mountain move movie music name near next
nice number nurse office online open opening order orders outside owe owes owed own owner
package page paid paint pair paper parent park parking part partner party pass past pay paying
payment payments pet phone photo pick picture piece plan plant play point pool poor popular
possible post prefer prefers preference price prices problem produce product products profession
program project provide public quality quick quiet rain read ready real reason receive red rent
repair report request rest restaurant return rich ride right river road room run sale sales save
school sea season seat second sell send sent serve service services session set share ship shop
short sick side sign simple sing sister sit size sky sleep slow small smart smell son song space
special spend sport stand stay stop store story street strong student study style subject sugar
suit summer sun supplier support sweet swim table talk taste tax tea teach teacher team
telephone test ticket tool top total town trade train travel treatment tree trip true try turn
understand unit unpaid vacation value vegetable visit wait walk wall warm wash watch water wear
weather wedding weekend weight wife win wind window winter wish wood word work worker working
works world worry write wrong young monday tuesday wednesday thursday friday saturday sunday
january february march april june july august september october november december black white
blue green yellow brown two three four five six seven eight nine ten hundred thousand
    """
)

# The question is about the words after one of these.
TOPIC_MARKERS = _words("about with of for regarding concerning from does did has")
