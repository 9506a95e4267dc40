"""Grammar and question words of languages other than English and Hebrew.

They occur in any text and name no topic. A word that names something in English ("die", "AI",
"Uber") is in no list. An accent is ignored, so that "für" can't be told from "fur".
"""

from __future__ import annotations

from memoryproject.foundation.text.characters import fold


def _words(text: str) -> frozenset[str]:
    return frozenset(fold(text).split())


_ARABIC = """
في من على إلى الى عن مع هل ما ماذا متى أين كيف كم لماذا أي هذا هذه ذلك تلك هو هي هم نحن أنا أنت أنتم
التي الذي الذين كان كانت يكون لا نعم لم لن قد أو ثم إن أن كل عند عندي عندك عندكم عندنا لدي لدينا
لديكم لنا لك لكم لي له لها شكرا مرحبا فضلك رجاء
"""

_CHINESE = """
哪里 在哪 什么 么时 时候 多少 几点 怎么 么样 为什 我们 你们 他们 谁 吗 呢
"""

_FRENCH = """
le la les une des du et ou mais donc que qui quoi quel quelle quels quelles quand comment combien
pourquoi est sont etait suis sommes avons avez ont au aux dans avec sans par chez ce cet cette ces
mon mes tes sa ses notre nos votre vos leur leurs je tu il elle nous vous ils elles te se ne pas
tres bien oui non merci bonjour bonsoir salut svp cest jai
"""

_GERMAN = """
der das dem ein eine einen einem einer eines und oder aber nicht ist sind sie ich du er es wir ihr
mein meine meinen meiner dein deine deinen deiner sein seine unser unsere euer eure kann konnen muss
mussen soll sollen haben habe hast wird werden wurde wer wie wo wann warum welche welcher welches
wohin woher wogegen womit wieviel wieso weshalb auf aus bei mit nach von vom zu zum zur im um durch
gegen ohne unter zwischen auch noch nur sehr schon dann dort hier bitte danke hallo ja nein
kein keine mir mich dir dich uns ihnen ihm ihn dass weil wenn als ob
"""

_ITALIAN = """
il lo gli di del dello della dei degli delle al allo alla agli alle da dal dalla nel nella con su
sul sulla per tra fra che chi cosa quale quali quando dove quanto quanti perche ed non si ho hai ha
abbiamo avete hanno sono siamo siete erano mio miei tuo tua suo sua nostro nostra vostro io
lui lei noi voi loro mi ti ci vi questo questa questi quello quella molto piu anche posso puo voglio
ciao grazie prego buongiorno
"""

_PORTUGUESE = """
um uma uns umas da dos das na nos nas em por para sem sobre entre desde qual quais onde
quem como quantos porque sao foi estao estou este esse essa isso isto aquele tem temos tenho ser
estar sou somos meu minha meus minhas seu seus suas nosso nossa lhe eu ele ela eles elas voce voces
nao sim muito mas tambem pode quero ola obrigado obrigada favor
"""

_RUSSIAN = """
и в во не на я что он с со как это а то все она так его но да ты к у же вы за бы по только ее мне
было вот от меня еще нет о из ему когда даже ну ли если уже или ни быть был до вас вам там потом
себя ей они тут где есть для мы тебя их чем была без тоже будет будут тогда кто этот эта эти того
этого какой какая какое какие какого совсем здесь мой моя мое мои моего моей чтобы были куда зачем
можно при об нас нам про наш наша наше наши нашего ваш ваша ваше ваши вашего сколько почему откуда
чей чья который которая которые спасибо привет здравствуйте пожалуйста
"""

_SPANISH = """
el la los las un una unos unas y o de en hasta cual cuales cuando donde quien quienes cuanto
cuanta cuantos cuantas fue esta estan estamos estos estas ese eso esos esas aquel han hemos
eres tiene tienen tengo tenemos mis tus sus le yo ella ellos ellas usted ustedes ya muy pero
tambien puede puedo pueden quiero hola gracias buenos buenas
"""

_UKRAINIAN = """
і та що як де коли хто чи з від це ви ми ти він вона вони мій наш скільки чому який яка яке які
дякую привіт
"""

FUNCTION = _words(
    " ".join(
        (
            _ARABIC,
            _CHINESE,
            _FRENCH,
            _GERMAN,
            _ITALIAN,
            _PORTUGUESE,
            _RUSSIAN,
            _SPANISH,
            _UKRAINIAN,
        )
    )
)
